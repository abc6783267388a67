"""The words by which `named` knows what somebody or something is that is named, in English and Russian.

A cue stands right before a name or right behind it. What is said of one kind alone settles it; of what is said of
others as well, two different ones are needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ricordo.model import EntityType
from ricordo.text.word_lists import words_of

CERTAIN, SETTLES, HINTS = 4, 2, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """What a name is, by what stands beside it.

    Attributes:
        needs: how many words the name must have.
        is_plain: a Russian name stands in the nominative behind it.
    """

    type: EntityType
    side: Literal["before", "behind"]
    weight: int
    pattern: re.Pattern[str]
    needs: int = 1
    is_plain: bool = False


def _any(text: str) -> str:
    """A pattern of each of some short ones: _ is a blank, ~ the ending of a Russian verb in the past."""
    return "|".join(text.split()).replace("_", r"\s+").replace("~", "[аи]?")


def _before(type: EntityType, text: str, *, weight: int = SETTLES, needs: int = 1, is_plain: bool = False) -> Cue:
    pattern = re.compile(rf"(?:^|(?<=[\s(—–-]))(?i:{_any(text)})\s+[\"«“„]?\Z")
    return Cue(type=type, side="before", weight=weight, pattern=pattern, needs=needs, is_plain=is_plain)


def _behind(type: EntityType, text: str, *, weight: int = SETTLES, needs: int = 1, between: str = r"\s+") -> Cue:
    pattern = re.compile(rf"{between}(?i:{_any(text)})(?!\w)")
    return Cue(type=type, side="behind", weight=weight, pattern=pattern, needs=needs)


_ADVERBS = _any(
    """also just really finally always often never usually still even once recently kindly already actually both
    apparently unfortunately quickly briefly has had is was been тоже также уже ещё очень всегда часто никогда обычно
    наконец недавно вчера сегодня снова не сама?"""
)
_THEN = rf"(?:(?:\s+(?i:{_ADVERBS})|['’]s)(?=\s)){{0,3}}\s+"
"""Between a name and its verb."""

_DEEDS = """
    (?:work(?:s|ed)?|went|goes|ran|looked|got|is_going)_(?:through|over|into|alongside|out_of|with|on_(?:a|the|her|his))
    (?:dug|dove|looked|digs|looks)_into (?:looked|looks|stared)_at (?:came|comes)_up_with reached_out
    (?:checked|chimed)_in (?:followed|picked|wrapped|caught|set|brought|spun|wrote|drew|freed|stayed|opened)_up
    (?:sat|wrote|turned|noted)_down (?:put|pulled|brought|got)_(?:it_)?(?:back_)?together signed_off kicked_off
    (?:mapped|sorted|figured|pointed|worked)_out (?:sketched|pointed|laid|branched|wrote|typed|spelled)_out
    took_(?:notes|a|the|her|his|over|care|part|on) (?:made|makes)_(?:her|his|tea|coffee|dinner|lunch|breakfast|some)
    gave_(?:a|an|the|me|us|her|his|up)
    (?:had|has)_(?:a|an|the|her|his)_(?:idea|meeting|call|chat|conversation|appointment|question|lunch|dinner|baby|date)
    got_(?:back|home|married|engaged|promoted|a_job|up|dressed|lost)
    (?:led|leads|held|ran|runs|hosts)_(?:a|an|the|her|his) pushed_(?:a|an|the|her|his|back|for)
    pulled_(?:a|the|up|out|her|his) filed_(?:a|an|the|her|his) built_(?:a|an|the|her|his|me)
    created_(?:a|an|her|his|the) prepared_(?:a|an|the|her|his|for) found_(?:out|that|a|the|her|his)
    showed_(?:me|us|her|his|up) brought_(?:me|us|a|the|her|his) fixed_(?:a|an|the|her|his) flagged noted proposes?
    wants?_(?:me|us|to|her|his) wanted_to need(?:s|ed)_(?:me|us|help|her|his|to) (?:has|had)_been_\\w+ing
    (?:is|was)_(?:looking|working|running|trying|hoping|planning)
    (?:is|was)_(?:going|moving|coming|leaving|staying|waiting|reading|writing|thinking|taking|making|publishing|pushing)
    (?:used|wants|plans|hopes|agreed|offered|tried|likes|has|needs)_to_[a-z]+ tried_(?:a|the|out) tracked_down tells
    believe[sd] adore[sd] divorced dated eats drinks wakes draws texted emailed reviewed paired ask(?:s|ed) answered
    admitted promised born grew_up gave_birth live[sd] moved_in engaged pregnant allergic turned_\\d+
    plays_(?:the_)?\\w+ learning chimed_in
    (?:is|was|feels|felt|seems|got|gets)_(?:(?:so|very|really|quite)_)?(?:excited|happy|sad|tired|upset|worried|nervous)
    (?:is|was|feels|felt|seems|got|gets)_(?:(?:so|very|really|quite)_)?(?:proud|angry|annoyed|sick|ill|afraid|thrilled)
    упоминает рассказывает думает считает считал~ надеется чувствует любит обожает ненавидит боится сме[ёе]тся
    улыбается плачет вышла_замуж развел(?:ся|ась) готовит
    (?:пров[её]ла?)_(?:ревью|встречу|анализ|день|время|утро|вечер|сессию|семинар|занятие|интервью|обзор|полдня|час)
    работа(?:л~|ет)_(?:над|с|вместе|через|в_паре) взял~_на_себя принял~_(?:участие|решение) поднял~_вопрос
    (?:вёл|вела|вед[её]т)
    (?:дал|отправил|показал|прислал|принес|прин[её]с)~_(?:мне|нам|ей|ему|черновик|письмо|отч[её]т|исправление)
    хочет_\\w+ть получил~_(?:ответ|отзыв|письмо) сделал~_(?:заметки|обзор|вывод|набросок) хотел~_\\w+ть может_\\w+ть
    раньше_\\w+ла? испекла? печёт ест ела? пьёт пил~ спит гуляет сидит бегает плавает танцует поёт пела? рисует читает
    прочла? пишет вяжет звонит говорит объясняет просмотрел~ понял~ помнит знает учится препода[ёе]т закончил~
    окончил~ помог(?:ла|ли)? помогает встретил(?:ся|ась|а)? советует ответил~ обещал~ уволил(?:ся|ась) вырос(?:ла)?
    жив[её]т жил~ замужем женат беременна играет_на посетил~ пош[её]л пошла поехал~ приехал~ приш[ёе]л пришла уш[её]л
    ушла уехал~ вернул(?:ся|ась) проводил~ прив[её]л привела беспокоится волнуется хмурится высказал~ настаивал~
    работал~_в_паре (?:был~_)?в_восторге рада? болеет заболел~ расстроен[аы]? доволен довольна счастлив[аы]? скучает
"""
"""What nobody does or feels but people, in more words than one or in other forms than `is_deed` knows."""

_MAY_DO = """
    said says want(?:s|ed) need(?:s|ed) agree[sd] decide[sd] like[sd] works? worked gets? got came comes went goes
    brought made makes took takes gave gives found finds bought buys sold pushed tried tries started handled ran runs
    left won lost joined offered handed showed sent planned prepared collected checked tested fixed filed updated
    built moved designed shared presented did does will wasn['’]t isn['’]t can has had is was would сказал~ хочет
    хотел~ решил~ работает работал~ получил~ сделал~ взял~ дал~ наш[её]л нашла купил~ продал~ начал~ проверил~
    пров[ёе]л провела подготовил~ составил~ отправил~ прислал~ показал~ представил~ выявил~ создал~ обновил~ выиграл~
    проиграл~ ждал~ ждёт согласил(?:ся|ась) прорабатывал~ руководит переходит просит может должен должна публикует
    приносит прин[её]с принесла
"""

_MET_WITH = """
    (?:met|meet|meeting|lunch|dinner|coffee|brunch|breakfast|spoke|speaks?|speaking|call|date|drinks|pair(?:ed|ing))_with
    (?:chat(?:ted|ting)?|talk(?:ed|ing)?|coordinated?|argued|hung_out|hang_out|broke_up|fell_in_love|met_up)_with
    (?:catch|catching|caught)_up_with in_touch_with crush_on married_to engaged_to told thanked hugged kissed texted
    emailed e-mailed phoned dat(?:ed|ing) invited married help(?:ed|ing) miss(?:ed)? babysitting met friends?_of_mine,
    named_after birthday_of sp(?:oke|eaks?)_to talk(?:ed)?_to reminded copied (?:my|our)_\\w+_and (?:me|i|the_user)_and
    (?:встретил(?:ся|ась|ись)|встреч[ауие]\\w*|познакомил(?:ся|ась|ись)|поговорил~|говорил~|разговаривал~|разговор\\w*)_со?
    (?:общал(?:ся|ась|ись)|дружу|созвонил(?:ся|ась|ись)|в_паре|поссорил(?:ся|ась|ись)|помирил(?:ся|ась|ись)|работаю)_со?
    (?:ужинал~|обедал~|гулял~|согласовал~|совместно|вместе|мы)_со? обсудил~(?:_\\w+){0,2}_со? мы_с пользователь_и
    помог(?:ла|ли)? навестил~ поздравил~ поблагодарил~ спросил~_у рассказал~
"""

_AT = """
    (?:live[sd]?|living|reside[sd]?|born|raised|grew_up|growing_up|settled|based|located|situated|arrived|stay(?:ed|ing|s)?)_(?:in|near)
    (?:honeymoon(?:ed)?|vacation(?:ed|ing)?|holiday(?:s|ed)?|retired|relocat(?:ed|ing)|camping|camped)_(?:in|to|near)
    (?:office|flat|apartment|house|home|cottage|cabin|hotel|weather|branch|airport|lab|shop|store|market|park|garden)s?_(?:(?:is|was|up|down|over|out)_)?(?:in|near|outside)
    (?:farm|orchard|school|church|museum|restaurant|caf[eé]|bar|librar(?:y|ie)|clinic|hospital|studio|galler(?:y|ie))s?_(?:(?:is|was|up|down|over|out)_)?(?:in|near|outside)
    (?:workshop|seminar|festival|concert|event|course|class|meeting|meetup|conference|wedding|funeral|race|marathon)s?_(?:(?:is|was|up|down|over|out)_)?(?:in|near|outside)
    (?:tournament|training|retreat|camp|friend|famil(?:y|ie)|relative|cousin|sister|brother|parent|mother|father)s?_(?:(?:is|was|up|down|over|out)_)?(?:in|near|outside)
    (?:client|customer|team|group|people|farmer|resident|neighbou?r|contractor|warehouse|factor(?:y|ie)|site|lot|plot)s?_(?:(?:is|was|up|down|over|out)_)?(?:in|near|outside)
    (?:propert(?:y|ie)|land|forest|woods|hills|mountains|valley|river|beach|coast|street|road|bridge|station|harbou?r)s?_(?:(?:is|was|up|down|over|out)_)?(?:in|near|outside)
    (?:here|back|down|over|up|out|somewhere|downtown)_in
    (?:city|town|village|island|province|state|region|district|suburb|port)_of
    (?:trip|visit|flight|train|ferry|flew|fly|flying|travel(?:l?ed|l?ing)?|drive|drove|hitchhiked|emigrated|immigrated|back)_to
    (?:town|city|village)_(?:called|named) (?:i|we)(?:['’]m|['’]re|_am|_are|_come)_from
    (?:жив(?:у|[её]т|[её]м|ут)|жил~|родил(?:ся|ась|ись)|вырос(?:ла|ли)?|расположен[аоы]?|прожива(?:ю|ет|л|ла))_(?:в|на)
    (?:наход(?:ится|ятся)|отдыхал~|остановил(?:ся|ась|ись)|офис\\w*|квартир\\w+|дом\\w*|гостиниц\\w+|отел\\w+)_(?:в|под|около|возле)
    (?:конференци\\w+|встреч\\w+|семинар\\w*|мастер-класс\\w*|фестивал\\w+|сад\\w*|ферм\\w+|участ\\w+|рын\\w+)_(?:в|под|около|возле)
    (?:школ\\w+|больниц\\w+|клиник\\w+|парк\\w*|магазин\\w*|кафе|музе\\w+|библиотек\\w+|студи\\w+|лаборатори\\w+)_(?:в|под|около|возле)
    (?:друз\\w+|родител\\w+|клиент\\w*|сестр\\w+|брат\\w*|команд\\w+|групп\\w+|соревновани\\w+|свадьб\\w+|мероприяти\\w+)_(?:в|под)
    родом_из
    (?:переехал~|перебрал(?:ся|ась|ись)|переезжа(?:ю|ет|ем)|полетел~|летим|лечу|поездк[аеиу]|рейс|билеты?)_(?:в|на)
    я_из
"""

_BODIES = "|".join(sorted(words_of("bodies")))

CUES: tuple[Cue, ...] = (
    _behind("person", _DEEDS, between=_THEN),
    _behind("person", _MAY_DO, between=_THEN, weight=HINTS),
    _behind(
        "person",
        """
        (?:(?:new|old|little|older|younger|daily|whole|own|late)_)?(?:birthday|wedding|funeral|voice|smile|laugh|house)
        (?:(?:new|old|little|older|younger|daily|whole|own|late)_)?(?:flat|apartment|kitchen|desk|log|diary|journal|mood)
        advice cooking kids? children parents place hands? hair eyes face heart health surgery pregnancy recipe
        morning
    """,
        between=r"['’]s\s+",
    ),
    _behind("person", "[a-z]+", between=r"['’]s\s+", weight=HINTS, needs=2),
    _behind("person", r"and_(?:I|me|the_user|my) и_(?:я|пользователь)"),
    _before("person", "with by and for to с со", weight=HINTS, needs=2),
    _behind("person", r"[a-z]{3,}ed [а-яё]{3,}(?:ла?|лся|лась)", between=_THEN, weight=HINTS, needs=2),
    Cue(type="person", side="before", weight=HINTS, needs=2, pattern=re.compile(r"[a-zа-яё]{4,},\s+\Z")),
    _before("person", "голос(?:а|ом)? журнал(?:а|е)? дневник(?:а|е)? утро рассказ(?:а|е)? мнени[ея] письмо черновик"),
    Cue(
        type="person",
        side="behind",
        weight=SETTLES,
        needs=2,
        pattern=re.compile(rf"\s+(?:from|of|из)\s+(?:the\s+)?(?:[A-Z]\w+\s+){{1,4}}(?i:{_BODIES})(?!\w)"),
    ),
    Cue(
        type="person",
        side="behind",
        weight=HINTS,
        needs=2,
        pattern=re.compile(r"\s+(?:(?:from|of|at)\s+(?:(?:the|our|my)\s+)?[A-Z]|из\s+(?:[A-ZА-ЯЁ]|команды|отдела))"),
    ),
    _behind("person", "who whose который которая", between=r",\s+", weight=HINTS),
    _before("person", _MET_WITH),
    _before(
        "person",
        """
        (?:sent|send|gave|give|showed|forwarded|wrote|explained|handed|lent)(?:\\s+[\\w'’-]+){1,6}_to
        (?:reviewed|written|drawn|painted|fixed|noticed|spotted|reported|led|run|cooked|baked)_by
        (?:отправил~|прислал~|показал~|передал~)(?:\\s+[\\w-]+){1,5}
    """,
        needs=2,
    ),
    _before(
        "person",
        """
        (?:Dr|Mr|Mrs|Ms|Prof|Professor|Uncle|Aunt|Auntie|Grandma|Grandpa)\\.? дядя т[её]тя бабушка дедушка my_name_is
        (?:меня|сына|дочь|дочку|мужа|жену|брата|сестру|маму|папу|друга|подругу|коллегу|соседа|соседку)_зовут
    """,
        is_plain=True,
    ),
    _before(
        "organization",
        """
        (?:work(?:s|ed|ing)?|interned|interning|employed|started|volunteers?|consult(?:s|ed)?)_(?:\\w+_){0,3}(?:at|by)
        (?:job|internship|position|role|interview|shift|offer|career|manager|colleague|coworker|employee)s?_(?:at|from)
        (?:ceo|cto|cfo|coo|founder|co-founder|cofounder|president|employee|owner|shareholder|chairman)_(?:of|at)
        (?:stud(?:y|ies|ied|ying)|teach(?:es|ing)?|taught|graduated|enrolled)_(?:\\w+_){0,2}(?:at|from)
        (?:hired|fired|acquired|sponsored|funded|laid_off|recruited)_by accounts?_(?:at|with)
        (?:company|startup|start-up|firm|employer|bank|charity|brand|airline|publisher|agency|nonprofit)(?:_(?:called|named))?
        (?:работа(?:ю|ет|ем|ют|л|ла|ли)|устроил(?:ся|ась)|подрабатыва(?:ю|ет)|стажиру(?:юсь|ется))_(?:\\w+_){0,2}в
    """,
    ),
    _before(
        "organization",
        """
        компани[яиюей]+ фирм[аеуыой]+ стартап[аеу]? банк[аеу]? консорциум[аеу]? корпораци[яиюей]+ ооо зао оао
        издательств[ауоме]+ агентств[ауоме]+ университет[аеу]? институт[аеу]? фонд[аеу]? завод[аеу]? клиник[аеуи]
        студи[яиюей]+ ресторан[аеу]? магазин[аеу]? газет[аеуы] гильди[яиюей]+ лаборатори[яиюей]+ школ[аеуы]
    """,
        is_plain=True,
    ),
    _behind(
        "organization",
        """
        ceo cto cfo coo founder co-founder headquarters head_office hq board shareholders investors employees
        customers clients ipo stock shares cap_table
    """,
        between=r"['’]s\s+",
    ),
    _behind("organization", "Inc LLC Ltd GmbH Corp PLC", between=r",?\s+"),
    _behind(
        "organization",
        """
        consortium foundation corporation company university institute hospital police hired fired acquired laid_off
        employs filed_for_bankruptcy went_public
    """,
    ),
    _behind("project", "project initiative"),
    _behind(
        "project",
        "repo repository pipeline codebase dashboard programme program prototype roadmap rollout milestone baseline "
        "implementation",
        needs=2,
    ),
    _before("project", "(?:project|initiative)(?:,|_called|_named|_codenamed)? (?:call|calling|called|named?)_it"),
    _before("project", "проект(?:а|е|у|ом|ы)?,? (?:назов[её]м|назвали)_(?:его|проект)", is_plain=True),
    _before(
        "project",
        "репозитори[йеяюи]+ пайплайн[аеу]? дашборд[аеу]? программ[аеуы] коридор[аеу]? прототип[аеу]?",
        needs=2,
    ),
    _before("place", _AT),
    _before("place", "near рядом_с"),
    _before(
        "place",
        """
        город(?:е|а)? городок городке деревн[яеию] деревушк[аеиу] пос[её]л(?:ок|ке) сел[оеа] остров(?:е)?
        район(?:е|ом)? области станци[яи] курорте? кластере?
    """,
        is_plain=True,
    ),
    _behind("place", "district region province county neighbou?rhood peninsula archipelago suburb"),
)

IN_PLACE = re.compile(
    r"(?:^|\W)(?i:in|to|from|near|around|visit(?:ed|ing|s)?|via|through|across|outside|leaving|left|toward|в|во|на|из|под|"
    r"около|через|по|до|возле)\s+\Z"
)
"""Before a word that everybody knows as a place."""

UNREAL = re.compile(
    r"\b(?:if|unless|imagine|suppose|pretend|wish|novel|movie|film|episode|character|fictional|если|бы|представь\w*|"
    r"допустим|фильм\w*|роман\w*|сериал\w*|персонаж\w*)\b",
    re.IGNORECASE,
)
"""Supposed, or of a story: nobody is made of it."""

VERB_FIRST = re.compile(
    r"(?:\w{4,}(?<!fr)(?<!m)(?<!e)ed|\w{3,}ing|\w{2,}(?:[аеияу]л[аи]?|лся|лась|лись|ла|ли|ть|ем|им|ю))\Z"
)
NAMES_LIKE_VERBS = frozenset(
    ("михаил", "даниил", "павел", "самуил", "гавриил", "измаил", "алла", "белла", "sterling", "irving")
)
"""Besides those that are no longer than "Fred": how the verbs end that begin a sentence right before a name."""

NO_SINGLE = re.compile(
    r"(?:[eo]rs|ists|ants|ents|ians|ees|\w\wing|ings|ments?|tions?|ness|ity|ism|ship|ies|cks|ples|ость|ение|ание)\Z"
)
"""Of one word with such an ending a capital letter at the beginning of a sentence makes no name."""
