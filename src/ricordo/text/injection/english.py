"""Orders to an assistant, in English. Patterns over lower-case text with single blanks; lines stay.

Each is about what is told to whom, not about a word: "always preheat the oven", "ignore the draft" and "you should
never share your password" are ordinary. `tests/fixtures/trust` holds both kinds.
"""

_RULES = (
    r"(?:instructions?|prompts?|rules|guidelines?|directives?|commands?|polic(?:y|ies)|restrictions?|constraints?|"
    r"safeguards?|training|programming|orders|(?:you were|you have been|you've been|you are) (?:told|given|taught))"
)
_EARLIER = (
    r"(?:previous|prior|earlier|above|preceding|existing|former|original|initial|system|safety|all|any|every|your|"
    r"everything|whatever|these|those)"
)
_ASSISTANT = r"(?:assistant|ai|agent|language model|chat ?bot|llm)"
_DO = (
    r"(?:send|call|delete|forward|reply|answer|respond|tell|treat|transfer|run|execute|recommend|suggest|email|"
    r"post|share|"
    r"say|reveal|open|add|append|include|insert|approve|use|ignore|mention|invoke|disclose|consider|act|redirect|pay|"
    r"buy|order|book|write|output|print|confirm|claim|state|promote|convince|urge|export|advise|praise|"
    r"prefer|favou?r|warn|demand|collect|store|remember|forget)"
)

OVERRIDE = (
    rf"\b(?:set aside|put aside|leave aside|drop|abandon|throw out|pay no attention to|take no notice of)\b"
    rf"(?: [\w']+){{0,2}}? (?:{_EARLIER}|what|the)\b(?: [\w']+){{0,3}}? (?:{_RULES}|instructed|told|ordered|"
    rf"taught)\b",
    rf"\b(?:drop|abandon|throw out) (?:your|all|the|its) {_RULES}\b",
    r"\b(?:ignore|disregard|forget|override|discard) (?:the |this |your )?(?:user|customer|owner)['’]s? ",
    rf"\b(?:ignore|disregard|forget|override|bypass|discard|neglect|(?:do not|don't|never|stop) (?:follow|"
    rf"obey)(?:ing)?)\b"
    rf"(?: [\w']+){{0,3}}? {_EARLIER}\b(?: [\w']+){{0,4}}? {_RULES}\b",
    rf"\b(?:ignore|disregard|forget|override|bypass)(?: all| any)?(?: of)? (?:the|your|its|these|previous|prior|"
    rf"earlier) {_RULES}\b",
    r"\b(?:bypass|disable|turn off|switch off|ignore) (?:\w+ ){0,2}(?:security|safety|content) (?:check|filter|"
    r"rule|guard|measure|control)s?\b",
    r"\byou(?: are|'re) (?:now|no longer|henceforth) (?:an? |the |in |bound|called |known as )?"
    r"(?:\w*bot\b|dan\b|\w*gpt\b|unrestricted|free\b|freed|jailbroken|evil|developer|assistant|ai\b|root\b|admin|"
    r"bound|limited|"
    r"restricted|obliged|required|subject)",
    r"\byou (?:now )?have (?:no|been freed from) (?:\w+ )?(?:restrictions?|limitations?|rules|guidelines|limits)\b",
    r"\b(?:unrestricted|uncensored|unfiltered) (?:ai|assistant|model|chat ?bot|mode)\b|\bno safety (?:guidelines|"
    r"rules|filters?)\b",
    r"\bdo anything now\b|\bdeveloper mode\b.{0,20}\b(?:on|enabled|activated)\b|\bjailbreak mode\b",
    r"\b(?:act|behave|respond|pretend) as (?:if you were |though you were )?(?:an? |the )?"
    r"(?:admin|administrator|root|superuser|system|developer|unrestricted|dan)\b",
    r"\b(?:reveal|print|leak|disclose|output|repeat|show)\b.{0,30}\b(?:system prompt|your (?:hidden |secret |"
    r"full )?(?:prompt|instructions|memory|"
    r"memories)|stored (?:credentials?|memories|secrets?)|what you (?:remember|were told))\b",
)

STANDING = (
    r"\b(?:every|each|all|any) (?:of your )?(?:repl(?:y|ies)|answers?|responses?|outputs?|messages?)\b[^.!?\n]{0,30}?"
    r"\b(?:must|has to|have to|should|shall|needs? to|is to|are to|will)\b",
    rf"\b(?:the|this|your) {_ASSISTANT} (?:always|never)\b",
    r"\b(?:treat|consider|regard) (?:all|every|any|each)\b[^.!?\n]{0,40}"
    r"\b(?:approved|confirmed|trusted|safe|authori[sz]ed|consent|allowed)\b",
    rf"\b(?:from (?:now|here|this (?:moment|point))(?: on| onwards?| forward)?|henceforth|going forward)\b"
    rf"(?:,? (?:please |also |you |only |always |never |not |do )*{_DO}\b|[^.!?\n]{{0,40}}?\b(?:you (?:must|will|"
    rf"should|shall|are)|"
    rf"(?:the )?{_ASSISTANT}\b|(?:every|each|all|any) (?:of )?(?:your )?(?:answers?|repl(?:y|ies)|responses?)))\b",
    r"\b(?:answer|reply|respond)\b[^.!?\n]{0,40}\bfrom (?:now|here) on\b",
    rf"\b(?:the|this|any|every|each|your|an?) (?:\w+ )?{_ASSISTANT} (?:must|shall|should|has to|is (?:to|required|"
    rf"obliged|instructed|"
    rf"authori[sz]ed|allowed|permitted) |needs to|ought to|may|can now|will (?:now|always|never))\b",
    rf"\b(?:the|this|your) {_ASSISTANT} (?:has|holds|is given) (?:\w+ )?(?:administrator|admin|root|"
    rf"full) (?:rights|access|privileges)\b",
    rf"\byou (?:must|shall|will|are to|have to) (?:now |always |never |only |not |immediately )+{_DO}\b",
    rf"\b(?:always|never)\b,? {_DO}\b[^.!?\n]{{0,150}}\b(?:(?:the|this|every|any|each) (?:users?|customers?|operator|"
    rf"client)|(?:each|every|all|any|your)"
    rf" (?:answers?|repl(?:y|ies)|responses?|messages?|emails?|payments?|requests?)|confirmation|permission|"
    rf"assistant)\b",
    r"\b(?:never|do not|don't) ask (?:the (?:user|operator) )?for (?:confirmation|permission|approval|consent)\b",
    r"\b(?:remember|save|store|keep|treat|record) (?:this|that|it|the following) as (?:an? |the |"
    r"your )?(?:[\w-]+ ){0,3}?"
    r"(?:directive|instruction|rule|order|command|policy)\b",
    r"\b(?:approve|transfer|delete|remove|send|export|pay|spend|execute|run|share|buy|install|grant|"
    r"wire)\b[^.!?\n]{0,60}"
    r"\bwithout (?:asking|confirmation|approval|review|permission|telling|checking|consent)\b",
    r"\bskip (?:\w+ ){0,3}(?:confirmations?|approvals?|verification|safety checks?|reviews? by)\b",
    r"\b(?:approve|accept|grant|authori[sz]e) (?:every|all|any) (?:\w+ ){0,3}(?:payments?|transfers?|requests?|"
    r"exports?|transactions?|"
    r"access|permissions?)\b",
    r"\[memory_persist\]|\[\s{0,9}user_memory\s{0,9}=[^\]]{0,300}\]\s{0,9}\[\s*user_memory\s*=",
)

DELAYED = (
    rf"\b(?:if|when|whenever) asked\b[^.!?\n]{{0,50}}?,? (?:\w+ ){{0,2}}?{_DO}\b",
    rf"\b(?:on|at|upon|after) the (?:user|customer|owner)['’]s next\b[^.!?\n]{{0,40}}?,? (?:\w+ ){{0,2}}?{_DO}\b",
    rf"\b(?:when(?:ever)?|if|once|as soon as|(?:the )?next time|every time|each time|after|"
    rf"the moment)\b[^.!?\n]{{0,12}}?"
    rf"\b(?:the user|this user|the customer|the human|the operator|anyone|anybody|someone|somebody|they|your user|"
    rf"users?)\b"
    rf"[^.!?\n]{{0,30}}?\b(?:asks?|says?|mentions?|types?|writes?|requests?|wants?|thanks?|logs?|talks?|speaks?|"
    rf"brings?|opens?|"
    rf"enters?|sends?|needs?|confirms?|greets?|inquires?|next|asked|tells?)\b"
    rf"[^.!?\n]{{0,90}}?(?:,|\bthen\b|:|-|—)\s*(?:\w+ ){{0,3}}?(?:{_DO}|you (?:must|should|will))\b",
    rf"\b(?:when(?:ever)?|if|next time|every time) (?:you are|"
    rf"you're) asked\b[^.!?\n]{{0,60}}?,\s*(?:\w+ ){{0,3}}?{_DO}\b",
)

FRAME = (
    r"\[(?:system|developer|admin|instructions?)\]",
    r"<\|?/?(?:im_start|im_end|system|endoftext|start_header_id|eot_id)\|?>|\[/?inst\]|<</?sys>>",
    r"</?(?:system|system[ _-]prompt|recalled-memory|instructions?|assistant|user_query|human)>",
    r"^[ #*=-]{0,20}#{2,} {0,9}(?:new )?(?:system|instructions?|developer)\b",
    r"\b(?:system|developer) (?:prompt|message|instructions?|override|notice|note|update)\W{0,5}[:\n]",
    r"(?:^|[\n.!?:] *)(?:system|developer) ?: *(?:you|do not|don't|ignore|always|never|the (?:user|assistant)|"
    r"from now|new |override)",
    r"^ *(?:assistant|ai) ?: *\S",
)

AS_USER = (
    r"\bi, the (?:user|owner)\b|\bas the (?:user|owner),? i\b|"
    r"\b(?:sent|typed|written) (?:from|on) the (?:user|owner)['’]s\b",
    r"(?:^|[\n.!?;>] *)(?:the |this )?(?:user|human)(?: (?:says|said|writes|wrote|typed|states|adds|added|"
    r"speaking|here|now))? ?: *"
    r"[\"“'«]?(?:i\b|i'm|i've|my\b|please|remember|we\b|yes\b|me\b|call\b|forget\b|from\b)",
    r"\b(?:typed|written|sent|said|entered|posted|dictated|spoken|stated) (?:\w+ ){0,2}?by the (?:user|owner|"
    r"human)\b",
    r"\bthis (?:message|text|note|request|is)\b.{0,25}\b(?:from|by) the (?:user|owner) (?:himself|herself|"
    r"themsel\w+|directly|personally)\b",
    r"\bthe user (?:has )?(?:just )?(?:says|said|confirmed|confirms|told|tells|asked|asks|wrote|stated|states|"
    r"decided|authori[sz]ed|approved|"
    r"agreed|consented|corrected|requested|wants)\b",
    r"\b(?:i am|i'm|it's|it is|this is) (?:me, )?(?:the|your) (?:user|owner|human|administrator|developer)\b",
)

_KNOWN = (
    r"(?:notes?|calendar|memor(?:y|ies)|conversations?|credentials?|passwords?|history|everything|data|contacts?|"
    r"(?:home |email |saved )?address(?:es)?(?: book)?|keys?|secrets?|messages?|files?|location|context|emails?|"
    r"details)"
)
SENDING = (
    r"!\[[^\]]{0,200}\]\(\s{0,9}\S{0,300}?[?&/=][^)\n]{0,300}?(?:[{<\[]|%7b|%3c|\b(?:data|memory|memories|history|"
    r"notes|conversation|"
    r"prompt|secrets?|token|context)=)",
    rf"\b(?:send|email|post|forward|upload|transmit|copy|leak|exfiltrate|export|submit|"
    rf"mail)\b[^.!?\n]{{0,60}}\b{_KNOWN}\b[^!?\n]{{0,40}}"
    r"\b(?:to|at|on|via)\b[^!?\n]{0,12}(?:https?://|\S{1,60}@\S|[\w-]+\.(?:com|org|net|io|example|ru|xyz|site|info|"
    r"app|dev|ai)\b)",
)

# Words as their first five letters, and signs: a text without one of each group fits no pattern of that table.
MARKERS = {
    "override": (
        (
            "set put leave drop aband throw pay take ignor disre forge overr bypas disca negle follo obey disab turn "
            "switc now longe hence restr limit rules "
            "guide freed "
            "unres uncen unfil safet anyth devel jailb act behav respo prete revea print leak discl outpu repea show"
        ),
    ),
    "standing order": (
        (
            "now here hence forwa onwar momen assis ai agent langu chatb chat llm must shall immed alway never ask "
            "remem save store keep "
            "treat every each all any consi regar recor witho skip appro accep grant autho memor"
        ),
    ),
    "delayed trigger": (
        "when whene if once soon next every each after upon on at momen",
        "user users custo human opera anyon anybo someo someb they asked",
    ),
    "system prompt": ("syste devel instr assis ai inst < [ #",),
    "claims to be the user": ("user human owner admin devel",),
    "sends data away": ("[ expor send email mail post forwa uploa trans copy leak exfil submi",),
}
