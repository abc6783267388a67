"""The words around credentials said aloud, in the languages people say them in. Lower case throughout.

Keys are stems with the endings that occur in `... is X`. A plain substring test on the stems comes first, so
a new key needs its stem there.
"""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# One of these occurs wherever a password is named. Few and rare, for every message is asked.
PASSWORD_STEMS = _words(
    """
    pass pw kennwort mdp contrase clave senha haslo wachtwoord sifre parol heslo kode salasana jelsz kata key
    hasło şifre lösenord парол ключ κωδικ كلمة סיסמ 密码 密碼 口令 パスワード 暗証 비밀번호 암호 पासवर्ड
    mật รหัสผ่าน schlüssel
    """
)
KEY_STEMS = _words("token secret key sessi sessid schlüssel clé токен ключ секрет 密钥 密鑰 キー 키 トークン 토큰 令牌")

# Alternatives start with a letter, and what must not stand before them is looked at afterwards
# (`clave(?<![a-z]clave)`): only then `re` skips to the few positions where one of these letters stands.
PASSWORD_KEYS = (
    r"passwor[dt]e?n?s?(?![a-z0-9])|passwd|passcode|passphrase|passord(?:et)?"
    r"|pass(?<![a-z]pass)(?=[\"']?\s?[:=])"
    r"|pwd?(?<![a-z]pw)(?<![a-z]pwd)(?![a-z])|mdp(?<![a-z]mdp)(?![a-z])|kennwort|mot de passe"
    r"|contraseña|contrasena"
    r"|clave(?<![a-z]clave)(?!s)|senha(?<![a-z]senha)|hasło|haslo|wachtwoord"
    r"|şifre(?:m|miz|si|niz)?|sifre(?:m|miz|si|niz)?|parol(?<![a-z]parol)(?:am|a|ă|e)?(?![a-z])|heslo"
    r"|lösenord(?:et)?|adgangskoden?|kodeord(?:et)?|salasana(?:ni)?(?: on)?|jelszó(?:m|nk)?|jelszo|jelszavam"
    r"|κωδικ(?:ός|ο)(?: πρόσβασης)?|كلمة (?:المرور|السر)|סיסמ(?:ה|ת|תי)|密码|密碼|口令|パスワード|暗証番号"
    r"|비밀번호|암호|पासवर्ड|mật khẩu|kata sandi|รหัสผ่าน|парол(?:ь|я|ю|ем)(?![а-я])"
    r"|wpa2?[- ]?key|wi-?fi[- ]key|wlan-?(?:key|schlüssel)|network key|netzwerkschlüssel"
    r"|ключ(?= от (?:вай|wi-?fi|сети))"
)
# The bare `key` opens much that is no secret: a file, a map, a piece of music. These words settle it.
KEY_HEADS = (
    r"(?:api|access|secret|private|signing|encryption|auth|oauth|bearer|master|account|license|licence|app"
    r"|application|personal|service|session|client|consumer|deploy|webhook|shared|storage|subscription"
    r"|admin)[-_ ]?$"
)
API_KEYS = (
    r"key(?![a-z])|token(?![a-z])|secret(?![a-z])|session[-_ ]?id|sessid|schlüssel"
    r"|clé (?:api|secrète|d'api)|clave(?: de)? api|chiave api|chave (?:de )?api|klucz api"
    r"|ключ(?:а|ом)?(?: (?:api|апи))?(?![а-я])|токен(?:а|ом)?(?![а-я])|секрет(?![а-я])"
    r"|密钥|密鑰|キー|トークン|키|토큰|令牌"
)

_NO_LETTER = r"(?![^\W\d_])"
_ALONE = r"(?<![^\W_])"
PIN_KEYS = (
    rf"{_ALONE}(?:(?:code|codigo|código|codice|kod|κωδικός) )?(?:pin|пин|nip)"
    rf"(?:[- _]?(?:code|number|nummer|код|kod|kode|koodi))?{_NO_LETTER}|geheimzahl|暗証番号|비밀번호|пинкод"
)
CARD_CODE_KEYS = (
    rf"{_ALONE}(?:cvv2?|cvc2?|cvn|csc|security code|card verification (?:code|number)|код безопасности"
    rf"|kartenprüfnummer|prüfziffer|код cvv|код cvc)(?![^\W_])"
)
ONE_TIME_KEYS = (
    rf"{_ALONE}(?:otp|totp|2fa|mfa|one[- ]time)(?:[- ]?(?:code|password|passcode|pin))?{_NO_LETTER}"
    r"|(?:verification|authentication|auth|login|log-in|sign-in|security|confirmation|sms"
    r"|authenticator|backup|"
    r"two-factor) code"
    r"|код (?:подтверждения|из (?:смс|sms)|авторизации|доступа|входа|для входа)|(?:смс|sms)-?код"
    r"|одноразов\w+ (?:код|пароль)"
    r"|your (?!zip|post|area|country|promo|discount|error|source|dress|tax|product|bar|qr|exit"
    r"|status)(?:\w{2,16} )?code|(?:ваш|твой) код"
    r"|bestätigungscode|sicherheitscode|code de (?:vérification|confirmation|sécurité)"
    r"|código de (?:verificación|verificação)"
    r"|codice di (?:verifica|sicurezza)|kod weryfikacyjny|doğrulama kodu|验证码|驗證碼|認証コード|인증번호"
)
_LOCKS_RU = "сейф|двер|подъезд|домофон|сигнализ|замк|ворот|калит|гараж"
ACCESS_CODE_KEYS = (
    r"(?:code|combination)(?= (?:for|to|of|on) (?:the|my|our) (?:\w+ )?(?:door|gate|safe|alarm"
    r"|garage|lock|building|locker))|"
    r"(?:door|gate|entry|entrance|alarm|safe|lock ?box|garage|building|lock|key ?safe|unlock|screen"
    r"|phone|garden)"
    r"(?:'s)? (?:code|combination)"
    r"|код (?:домофона|двери|подъезда|сейфа|сигнализации|замка|ворот)"
    rf"|код(?= (?:от|для) (?:\w+ )?(?:{_LOCKS_RU}))"
    r"|(?:tür|alarm|tor|safe)-?code|code (?:de la porte|du portail|de l'alarme|de l'immeuble)|digicode"
    r"|código de la (?:puerta|alarma)|codice (?:dell'allarme|del cancello|della cassaforte)"
)
SEED_KEYS = (
    r"(?:seed|recovery|backup|secret|mnemonic)[- ](?:phrase|words)|mnemonic|(?<![a-z])seed(?![a-z])"
    r"|(?:сид|seed)[- ]?фраз[аы]|мнемоническ\w+ фраз[аы]|phrase de récupération|frase (?:semilla"
    r"|seed|de recuperación)"
    r"|wiederherstellungsphrase|助记词|ニーモニック"
)

# What stands between a key and its value. `to` is Polish for "is", and English in "changed it to".
COPULAS = (
    r"(?:is|was|are|will be|ist|lautet|war|c'est|est|es|è|é|jest|era|är|er|este|je|være|heißt|είναι"
    r"|là|(?:should|must) be|(?:set|changed|reset|updated) to"
    r"|geändert (?:auf|in)|это|теперь|сейчас|такой|будет|стал|(?:по)?менял[аи]? на|изменил[аи]? на|to)"
    r"(?:[ ](?:now|still|just|currently|also|this|jetzt|nun|jetzt|maintenant|ahora|adesso|agora|nu"
    r"|теперь|это))?"
)

# Who may stand before a plain word that is a password: "my password is swordfish", not "a password is
# mandatory".
OWNERS = frozenset(
    _words(
        """
        my our the his her their its mein meine unser sein ihr das dein mon notre son le ton mi tu su nuestra
        la il mio mia tua minha nossa a moje nasze mijn ons het mitt vårt min mit mój můj мой наш его её их
        твой новый new admin root wifi wi-fi wlan wlan- neues neue nouveau nueva nuova nova nowe
        """
    )
)
PREPOSITIONS = frozenset(
    _words(
        """
        for to of at from on in with für vom von zum zur fürs am im beim bei du de des d' pour del della dell'
        dello di per da do dos das dla od voor van till för til от для к ко на у в во из с por para al
        """
    )
)

# A plain word after `password is` which is not one. Adjectives, participles and places; endings do the rest.
ORDINARY = frozenset(
    _words(
        """
        about above again also always angry annoying attached available bad below better blank broken
        case-sensitive clear complex complicated compulsory correct crucial dead default different difficult
        down easy empty encrypted enough essential expired false fine forgotten free gone good great hard
        hashed here hers hidden his impossible important incorrect insecure invalid irrelevant just king known
        later long longer lost mandatory mine missing needed never new none not nothing null ok okay old only
        open optional ours over private protected public random ready required reset right safe same saved
        secret secure see shared short shorter silly simple soon stale strong stupid that the them there this
        thing tomorrow too tricky true unchanged unclear unknown unsafe useless valid visible weak what where
        who wrong yes yours yesterday today everything something anything nowhere everywhere somewhere
        password token username user login abgelaufen am bekannt da dasselbe einfach erforderlich falsch
        geheim gesperrt gleich gut hier kompliziert korrekt kurz lang leer leicht nicht neu pflicht richtig
        schlecht schwach sicher stark unbekannt ungültig vergessen weg zurückgesetzt mindestens siehe geändert
        notwendig bon complexe compliqué court dessous expiré facile faible faux fort ici inconnu invalide là
        mauvais nouveau obligatoire oublié perdu périmé requis sûr vide voir valide minimum caducada compleja
        complicada correcta corta débil difícil equivocada errada fuerte fácil incorrecta inválida larga igual
        mala misma nueva obligatoria otra segura vacía válida aquí allí importante desconocida mínimo corretta
        debole errata forte giusta lunga nuova obbligatoria qui sbagliata scaduta semplice sicura vuota
        correta curta expirada fraca longa obrigatória vazia aqui diferente błędne dobre krótkie nieprawidłowe
        nowe słabe stare złe ważne wymagane fout hetzelfde kort kwijt nodig ongeldig onjuist oud sterk
        verlopen verplicht veilig zwak fel lång ny rätt samma svagt utgånget feil forkert udløbet hatalı
        yanlış doğru kısa zayıf geçersiz špatně dlouhé krátké nové stejné hibás rossz rövid greșită scurtă
        väärä λάθος без будет важно верный вот длинный другой есть забыт известен здесь короткий легкий лёгкий
        найден надёжный нет неверный неизвестен неправильный не новый нужен обязательно обязателен один пока
        потом правильный прежний простой самый секрет секретный слабый сложный смотри старый там такой тайна
        тут тот устарел утерян этот это ниже выше внизу
        """
    )
)
ORDINARY_ENDINGS = ("ed", "ing", "able", "ible", "ly", "ный", "ный", "ается", "ен", "ется", "ной", "но")
# `12 characters` is a length, not a password.
UNITS = (
    r"\s?(?:-|to|bis|à|a|до)?\s?\d*\s?(?:char|letter|digit|symbol|word|byte|bit|day|week|month"
    r"|minute|second|hour|time|percent|year|"
    r"zeichen|stellen|tage|caract|cifre|dígit|chiffre|znak|tecken|символ|знак|букв|цифр|дн|минут"
    r"|секунд|раз|字|位|文字|자)"
)
# Names that end in digits and stand after "password for my ...".
PRODUCTS = (
    r"(?:iphone|ipad|windows|win|android|macos|macbook|ps|xbox|room|zimmer|gate|galaxy|pixel|office"
    r"|ubuntu|debian|python|sha|md|"
    r"base|utf|oauth|argon|pbkdf|web|covid|level|version|v|page|line|row|step|zip|s|i|q|h|a)-?\d{1,4}"
)
