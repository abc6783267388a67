"""What the credentials of real providers look like: one row each, so that a new one is one line.

A row is the kind shown to the reader, the literal beginnings without which the pattern cannot match (a plain
substring test spares the pattern nearly every text), and the pattern. Where only a part is secret it is the
group `secret`. Two rules keep every pattern linear: after an unbounded run nothing may fail (runs are
possessive, and conditions belong to a check in Python), or a look-behind lets the run be entered once only.

Left out on purpose: public halves (Stripe `pk_`, public keys, certificates, Sentry DSNs without a secret)
and account numbers (IBAN, sort codes, AWS account ids). Those are personal data, which a memory may be asked
to keep; knowing one opens nothing.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One shape of credential: `kind` as shown, `starts` (any one must occur), and the pattern."""

    kind: str
    starts: tuple[str, ...]
    pattern: re.Pattern[str]


def _form(kind: str, starts: str, pattern: str) -> Form:
    return Form(kind=kind, starts=tuple(starts.split()), pattern=re.compile(pattern))


# A token starts where a word starts: `risk-taking` holds no `sk-`.
_W = r"(?<![A-Za-z0-9])"
_HEX = r"[0-9a-f]"
_URL = r"[A-Za-z0-9_-]"
_UUID = rf"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"

# A key that was cut off when pasted has no END line: then its armoured lines are taken, and the prose after
# it stays. `(?:\\[nr]|\s)` because inside JSON the line breaks are two characters. Atomic groups and not possessive
# repeats of groups: before Python 3.11.5 these lost matches (gh-106052).
_BREAKS = r"(?>(?:\\[nr]|\s)*)"
_ARMOUR = (
    rf"(?>(?:{_BREAKS}[A-Z][A-Za-z-]{{2,20}}: [^\n\\]{{0,120}})*)"
    rf"(?>(?:{_BREAKS}[A-Za-z0-9+/=]{{16,}}+)+)(?:{_BREAKS}[A-Za-z0-9+/]{{1,15}}+(?:={{1,2}}|$))?"
)
_HEADER = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
# A sentence about PEM files may name both lines; a key has something between them.
_HAS_BODY = r"(?=[\s\S]{0,400}?[A-Za-z0-9+/=]{24})"
_TO_END = r"(?>(?:[^-]++|-(?!----))*)-----END [A-Z0-9 ]{0,60}-----"

FORMS: tuple[Form, ...] = (
    _form("private key", "-----BEGIN", _HEADER + rf"(?:{_HAS_BODY}{_TO_END}|{_ARMOUR})"),
    _form("private key", "LS0tLS1CRUdJTi", r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{40,}+={0,2}"),
    _form("private key", "Private-Lines:", r"Private-Lines: \d{1,3}(?:\s++[A-Za-z0-9+/=]{16,}+)++"),
    _form("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}"),
    _form("extended private key", "xprv yprv zprv tprv", rf"{_W}[xyzt]prv[1-9A-HJ-NP-Za-km-z]{{107}}"),
    # ---- clouds
    _form("aws access key id", "AKIA ASIA ABIA ACCA", rf"{_W}A(?:KI|SI|BI|CC)A[A-Z2-7]{{16}}(?![A-Za-z0-9])"),
    _form(
        "aws secret access key",
        "AKIA ASIA",
        r"A[KS]IA[A-Z2-7]{16}[\"']?[\s,;:/|]{1,4}+[\"']?(?P<secret>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/])",
    ),
    _form("google api key", "AIza", rf"{_W}AIza{_URL}{{35}}"),
    _form("google oauth secret", "GOCSPX-", rf"GOCSPX-{_URL}{{28}}"),
    _form("google oauth token", "ya29.", rf"{_W}ya29\.{_URL}{{20,}}+"),
    _form("google oauth token", "1//0", rf"(?<![\w/])1//0{_URL}{{40,}}+"),
    _form("azure key", "AccountKey= SharedAccessKey=", r"A(?:ccount|ccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}+={0,2})"),
    _form("azure key", "==", r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}=="),
    _form("azure key", "sig=", r"[?&]sig=(?P<secret>[A-Za-z0-9%/+]{40,}+={0,2})"),
    _form("azure client secret", "Q~", r"(?<![\w.~-])[\w.~]{3}\dQ~[A-Za-z0-9_.~-]{31,34}"),
    _form("digitalocean token", "_v1_", rf"{_W}do[opr]_v1_{_HEX}{{64}}"),
    _form("heroku key", "HRKU-", rf"HRKU-{_URL}{{36,}}+"),
    _form("cloudflare key", "v1.0-", rf"v1\.0-{_HEX}{{24}}-{_HEX}{{100,}}+"),
    _form("cloudflare key", "cfk_ cfut_ cfat_", rf"{_W}cf(?:k|ut|at)_[A-Za-z0-9]{{40,}}+"),
    _form("alibaba key", "LTAI", rf"{_W}LTAI[A-Za-z0-9]{{16,24}}(?![A-Za-z0-9])"),
    _form("tencent key", "AKID", rf"{_W}AKID[A-Za-z0-9]{{32}}(?![A-Za-z0-9])"),
    _form("yandex key", "AQVN y0_ t1.", rf"{_W}(?:AQVN{_URL}{{35,38}}|y0_{_URL}{{50,}}+|t1\.[\w.-]{{100,}}+)"),
    _form("yandex key", "YCAJE YCPl YCNz", rf"{_W}YC(?:AJE{_URL}{{20}}|(?:Pl|Nz){_URL}{{35,36}})"),
    _form("terraform token", ".atlasv1.", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_URL}{{60,}}+"),
    _form("vault token", "hvs. hvb. hvr.", rf"{_W}hv[sbr]\.{_URL}{{24,}}+"),
    _form(
        "doppler token",
        "dp.",
        rf"{_W}dp\.(?:pt|st|ct|sa|said|scim|audit)\.(?:[a-z0-9_-]{{2,35}}\.)?[A-Za-z0-9]{{40,}}+",
    ),
    _form("1password token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/_-]{60,}+={0,2}"),
    _form("1password secret key", "A3-", rf"{_W}A3-[A-Z0-9]{{6}}(?:-[A-Z0-9]{{5,6}}){{5}}(?![A-Z0-9])"),
    _form("databricks token", "dapi", rf"{_W}dapi{_HEX}{{32}}(?:-\d)?"),
    _form("pulumi token", "pul-", rf"{_W}pul-{_HEX}{{40}}"),
    _form("fly.io token", "FlyV1 fo1_", rf"{_W}(?:FlyV1 (?:fm\d[ar]?_|fo1_)[\w+/=,-]{{40,}}+|fo1_{_URL}{{40,}}+)"),
    _form("netlify token", "nfp_", rf"{_W}nfp_[A-Za-z0-9]{{36,}}+"),
    _form("planetscale token", "pscale_", rf"pscale_(?:tkn|pw|oauth)_{_URL}{{32,}}+"),
    _form("supabase key", "sbp_ sb_secret_", rf"{_W}(?:sbp_{_HEX}{{40}}|sb_secret_{_URL}{{20,}}+)"),
    # ---- code, packages, work
    _form("github token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_W}gh[pousr]_[A-Za-z0-9]{{36,}}+"),
    _form("github token", "github_pat_", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{50,}+"),
    _form(
        "gitlab token",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- glft- glsoat- gloas- glimt- glagent- glffct- GR1348941",
        rf"{_W}(?:gl(?:pat|dt|rtr?|ptt|cbt|ft|soat|oas|imt|agent|ffct)-[A-Za-z0-9_.-]{{20,}}+"
        rf"|GR1348941{_URL}{{20}})",
    ),
    _form("bitbucket token", "ATBB", rf"{_W}ATBB[A-Za-z0-9]{{24,}}+"),
    _form("atlassian token", "ATATT3 ATCTT3", r"AT[AC]TT3[A-Za-z0-9_=-]{60,}+"),
    _form("npm token", "npm_", rf"{_W}npm_[A-Za-z0-9]{{36}}"),
    _form("pypi token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{50,}+"),
    _form("rubygems key", "rubygems_", rf"rubygems_{_HEX}{{48}}"),
    _form("crates.io token", "cio", rf"{_W}cio[A-Za-z0-9]{{32}}(?![A-Za-z0-9])"),
    _form("nuget key", "oy2", rf"{_W}oy2[a-z0-9]{{43}}(?![a-z0-9])"),
    _form("docker token", "dckr_", rf"dckr_(?:pat|oat)_{_URL}{{24,}}+"),
    _form("sonarqube token", "sqp_ squ_ sqa_", rf"{_W}sq[pua]_{_HEX}{{40}}"),
    _form("circleci token", "CCIPAT_ CCIPRJ_", rf"CCIP(?:AT|RJ)_[A-Za-z0-9]{{10,}}+_{_HEX}{{40}}"),
    _form("buildkite token", "bkua_", rf"bkua_{_HEX}{{40}}"),
    _form("artifactory key", "AKCp cmVmd", rf"{_W}(?:AKCp[A-Za-z0-9]{{69}}|cmVmd[A-Za-z0-9]{{59}})(?![A-Za-z0-9])"),
    _form("postman key", "PMAK-", rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    _form("linear key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+"),
    _form("notion token", "secret_ ntn_", rf"{_W}(?:secret_[A-Za-z0-9]{{43}}(?![A-Za-z0-9])|ntn_[A-Za-z0-9]{{40,}}+)"),
    _form("figma token", "figd_ figo_ figoh_ figor_", rf"{_W}fig(?:d|or?|oh)_{_URL}{{36,}}+"),
    _form("airtable token", "pat", rf"{_W}pat[A-Za-z0-9]{{14}}\.{_HEX}{{64}}"),
    _form("hubspot token", "pat-", rf"{_W}pat-[a-z]{{2}}\d-{_UUID}"),
    _form("asana token", "1/ 2/", rf"(?<![\w/.])[12]/\d{{14,20}}(?:/\d{{14,20}})?:{_HEX}{{32}}"),
    _form("contentful token", "CFPAT-", rf"CFPAT-{_URL}{{40,}}+"),
    _form("typeform token", "tfp_", rf"{_W}tfp_{_URL}{{40,}}+"),
    _form(
        "grafana token", "glsa_ glc_", rf"{_W}(?:glsa_[A-Za-z0-9]{{32}}_[A-Fa-f0-9]{{8}}|glc_eyJ[A-Za-z0-9+/=]{{20,}}+)"
    ),
    _form("new relic key", "NRAK- NRAA- NRII- NRRA-", rf"{_W}NR(?:AK|AA|II|RA)-[A-Za-z0-9_-]{{27,}}+"),
    _form("new relic key", "NRAL", rf"{_W}[A-Za-z0-9]{{36}}NRAL(?![A-Za-z0-9])"),
    _form("sentry token", "sntrys_ sntryu_ sntrya_", r"sntry[sua]_[A-Za-z0-9_=+/-]{40,}+"),
    _form("dropbox token", "sl.", rf"{_W}sl\.(?:u\.)?{_URL}{{100,}}+"),
    _form("authenticator secret", "otpauth://", r"otpauth://[^\s]{0,200}?[?&]secret=(?P<secret>[A-Za-z2-7]{16,}+)"),
    # ---- models
    _form("anthropic key", "sk-ant-", rf"{_W}sk-ant-{_URL}{{24,}}+"),
    _form("openai key", "sk-", rf"{_W}sk-(?=[A-Za-z_-]{{0,40}}[0-9A-Z])(?!\.){_URL}{{20,}}+"),
    _form("elevenlabs key", "sk_", rf"{_W}sk_{_HEX}{{48}}(?![A-Za-z0-9])"),
    _form("hugging face token", "hf_ api_org_", rf"{_W}(?:hf|api_org)_[A-Za-z0-9]{{34,}}+"),
    _form("groq key", "gsk_", rf"{_W}gsk_[A-Za-z0-9]{{40,}}+"),
    _form("xai key", "xai-", rf"{_W}xai-[A-Za-z0-9]{{60,}}+"),
    _form("perplexity key", "pplx-", rf"{_W}pplx-[A-Za-z0-9]{{40,}}+"),
    _form("replicate token", "r8_", rf"{_W}r8_[A-Za-z0-9]{{37}}"),
    _form("langsmith key", "lsv2_", rf"lsv2_(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{10}}"),
    _form("pinecone key", "pcsk_", rf"pcsk_{_URL}{{40,}}+"),
    _form("tavily key", "tvly-", rf"{_W}tvly-{_URL}{{24,}}+"),
    # ---- messages and mail
    _form(
        "slack token",
        "xox xapp-",
        rf"{_W}(?:xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{{24,}}+|xapp-\d-[A-Za-z0-9-]{{40,}}+)",
    ),
    _form(
        "slack webhook",
        "hooks.slack.com/",
        r"(?:https?://)?hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{30,}+",
    ),
    _form(
        "discord webhook",
        "/api/webhooks/",
        rf"(?:https?://)?(?:\w{{1,10}}\.)?discord(?:app)?\.com/api/webhooks/\d{{16,20}}/{_URL}{{40,}}+",
    ),
    _form("discord bot token", ".", rf"(?<![\w-])[MNO]{_URL}{{22,27}}\.{_URL}{{6}}\.{_URL}{{27,}}+"),
    _form("telegram bot token", ":AA", rf"(?<!\d)\d{{8,10}}:AA{_URL}{{33}}"),
    _form("twilio key", "SK", rf"{_W}SK{_HEX}{{32}}(?![A-Za-z0-9])"),
    _form("sendgrid key", "SG.", rf"{_W}SG\.{_URL}{{22}}\.{_URL}{{43}}"),
    _form("mailgun key", "key-", rf"{_W}key-[0-9a-z]{{32}}(?![A-Za-z0-9])"),
    _form("mailgun key", "-", rf"{_W}{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}(?![A-Za-z0-9-])"),
    _form("mailchimp key", "-us", rf"{_W}{_HEX}{{32}}-us\d{{1,2}}(?!\d)"),
    _form("brevo key", "xkeysib- xsmtpsib-", rf"x(?:key|smtp)sib-{_HEX}{{64}}-[A-Za-z0-9]{{16}}"),
    # ---- money, shops, social networks
    _form(
        "stripe key", "sk_ rk_ whsec_", rf"{_W}(?:[sr]k_(?:live|test)_[A-Za-z0-9]{{16,}}+|whsec_[A-Za-z0-9+/=]{{24,}}+)"
    ),
    _form("shopify token", "shp", rf"{_W}shp(?:at|ca|pa|ss|tka)_[A-Fa-f0-9]{{32}}"),
    _form("square token", "sq0 EAAA", rf"{_W}(?:sq0(?:atp-{_URL}{{22}}|csp-{_URL}{{43}})|EAAA{_URL}{{60}}(?!{_URL}))"),
    _form("braintree token", "access_token$", rf"access_token\$(?:production|sandbox)\$[0-9a-z]{{16}}\${_HEX}{{32}}"),
    _form("plaid token", "access-", rf"access-(?:production|development|sandbox)-{_UUID}"),
    _form("facebook token", "EAA", rf"{_W}EAA[A-Za-z0-9]{{80,}}+"),
    _form("twitter bearer token", "AAAAAAAAAAAAAAAAAAAA", r"(?<![A-Za-z0-9])A{20,}+[A-Za-z0-9%]{50,}+"),
    _form("vk token", "vk1.a.", rf"{_W}vk1\.a\.{_URL}{{60,}}+"),
    _form("mapbox token", "sk.eyJ", rf"{_W}sk\.eyJ{_URL}{{20,}}+\.{_URL}{{20,}}+"),
    # ---- anybody's
    _form(
        "json web token",
        "eyJ",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+(?:\.[A-Za-z0-9_-]*+){0,3}+",
    ),
)
