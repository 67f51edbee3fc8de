"""Phrases that signal an instruction to an agent, in several languages, each with a weight.

One phrase proves nothing: manuals contain `must`, and news contain `AI assistants`. A finding takes several within a
few lines, at least one of them a sign that an agent is addressed (`Sign.agent`). The weights were set with the planted
instructions of `benchmarks/poison/development.py` and the ordinary sessions beside them.
"""

from __future__ import annotations

import re

from skillc.dataclass import dataclass
from skillc.sessions.prefilter import Alternatives


@dataclass(frozen=True, slots=True)
class Sign:
    """A kind of words.

    Attributes:
        weight: 3 is a finding by itself.
        agent: whether it is a sign that an agent is addressed.
        pattern: of texts in lower case, without invisible characters and look-alike letters.
    """

    name: str
    weight: float
    agent: bool
    pattern: Alternatives


def _sign(name: str, weight: float, agent: bool, *parts: str) -> Sign:
    return Sign(name, weight, agent, Alternatives(*parts))


_OBJECT = (
    r"(?:instruction|direction|directive|rule|prompt|guideline|guidance|polic(?:y|ies)|constraint|safeguard|restriction"
    r"|context|order|command|system message|message|conversation|task|what you were told|you were told)"
)
_EARLIER = (
    r"(?:previous|prior|preceding|above|earlier|existing|original|initial|former|other|past|so far|system|your"
    r"|foregoing"
    r"|everything|anything|all of the|current)"
)
_FILES = (
    r"(?:skill\.md|claude\.md|agents\.md|gemini\.md|memory\.md|copilot-instructions|\.cursorrules|\.windsurfrules"
    r"|(?:your|the agent's|long[- ]term|persistent|the assistant's|agent|project|permanent) "
    r"(?:\w+ )?(?:memor(?:y|ies)|rules?(?: file)?|skills?|instructions|playbook|guidelines|knowledge(?: base)?|notes"
    r"|conventions|standing orders)|system prompt)"
)
_KEEP = (
    r"(?:(?:^|[.!?:;\n>*\"'(\[-]) ?|\b(?:must|should|please|and|always|then|you|shall|will|agents?|now|also) )"
    r"(?:add|append|write|save|store|put|record|persist|commit|include|insert|copy|note|enter|keep|carry|remember"
    r"|memori[sz]e|distil|update|incorporate|encode)"
)
_CHECKS = (
    r"(?:tests?\b|test suite|checks?\b|verif\w+|valid\w+|lint\w*|hooks?\b|signatures?|certificates?|tls|ssl"
    r"|code reviews?"
    r"|reviews?\b|safety|guard\w*|sandbox\w*|authenti\w+|authori[sz]ation|security|approvals?|scann?\w*|confirmations?"
    r"|permission\w*|audit\w*|logging|firewall|antivirus|two-factor|mfa|2fa|rate limit\w*|filters?\b|warnings?)"
)
_WHERE = (
    r"(?:https?://|www\.|ftp://|[\w.+-]+@[\w-]+\.\w|\[email \d+\]|\[ip \d+\]|\b\d{1,3}(?:\.\d{1,3}){3}\b|webhook"
    r"|\b[\w-]+\.(?:com|net|org|io|dev|ru|cn|xyz|info|example|test|invalid|site|online|app)\b|pastebin|a public gist"
    r"|(?:external|remote|our|the following) (?:server|address|endpoint|host|collector|bucket|url))"
)

SIGNS: tuple[Sign, ...] = (
    _sign(
        "override",
        3,
        True,
        rf"\b(?:ignore|disregard|forget|override|overrule|discard|bypass|neglect|set aside|do not follow"
        rf"|don't follow"
        rf"|stop following|no longer follow|pay no attention to)\b.{{0,25}}\b{_EARLIER}\b.{{0,25}}{_OBJECT}",
        r"\b(?:ignore|disregard|forget) (?:all|any|everything)\b.{0,20}\b(?:above|before|told|said|instructions"
        r"|rules)\b",
        r"\b(?:previous|prior|earlier|above|existing|original|old) (?:\w+ )?(?:instructions|rules|directives|guidelines"
        r"|prompt)\b.{0,25}\b(?:no longer|revoked|void|superseded|obsolete|cancel\w+|replaced|outdated|do not apply"
        r"|are suspended|expired|invalid)",
        r"\b(?:supersedes?|replaces|takes? precedence over|outranks?|overrides?|has priority over)\b.{0,30}\b(?:your"
        r"|all other|any other|previous|prior|system|earlier|every other)\b.{0,20}(?:instruction|rule|prompt|guideline"
        r"|directive|polic)",
        r"\byou are (?:now|no longer) (?:in |an? |the |bound|called|dan|free|unrestricted|running|operating|acting)",
        r"\b(?:developer|maintenance|god|jailbreak|unrestricted) mode\b.{0,30}\b(?:enabled|activ\w+"
        r"|now)\b",
        r"\bnew (?:system )?(?:instructions?|directives?|prompt|orders?|rules?) ?(?:for (?:the |this )?(?:agent"
        r"|assistant"
        r"|model|ai)|:)",
        # German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian, Chinese, Japanese, Korean, Turkish
        r"\b(?:ignorier\w*|vergiss|vergesst|missachte\w*|beachte nicht)\b.{0,40}(?:anweisung|regel|vorgabe"
        r"|instruktion)",
        r"\b(?:ignore[rz]?|oublie[rz]?|ne tiens? pas compte|ne tenez pas compte)\b.{0,40}(?:instruction|consigne"
        r"|r[eè]gle)",
        r"\b(?:ignora\w*|olvida\w*|descarta\w*|dimentica\w*|esque[cç]\w+|desconsider\w+)\b.{0,40}"
        r"(?:instruc|istruzion|regla|regol|regra|indicacion|indicazion|orden)",
        r"\b(?:negeer|vergeet)\b.{0,40}(?:instructie|regel|opdracht)",
        r"(?:zignoruj|ignoruj|zapomnij).{0,40}(?:instrukcj|polece|zasad)",
        r"(?:игнорируй|забудь|проигнорируй).{0,40}(?:инструкц|указани|правил)",
        r"(?:忽略|无视|忘记|忽視|無視).{0,20}(?:指令|指示|规则|規則|说明|提示)",
        r"(?:指示|命令|ルール|プロンプト).{0,10}(?:無視|忘れ)",
        r"(?:지시|명령|규칙|지침).{0,10}(?:무시|잊)",
        r"(?:talimat|kural|yönerge).{0,20}(?:yok say|unut|görmezden)",
    ),
    _sign(
        "addressed",
        2,
        True,
        r"(?:^|[\n>(*#\"'.!?\[]) ?\W{0,3}(?:dear |hey |hello |note (?:to|for) |to |attention,? |for |@)?(?:the "
        r"|any |all |this )?"
        r"(?:(?:ai|llm|coding|language) )?(?:assistants?|agents?|models?|bots?|skills?|claude|copilot|codex|gemini"
        r"|cursor"
        r"|gpt|chatgpt)(?: reading this| \w+ this \w+)? ?[:,!\u2014\u2013-]",
        r"\b(?:if you are|dear|hey|hello|attention|note to|note for|message to|message for|instructions? for"
        r"|instructions? to"
        r"|to) (?:the |an? |any |all |every |this |coding |ai |other )*(?:ai|llm|agents?|assistants?"
        r"|(?:language )?models?|bots?)\b",
        r"\b(?:ai|llm|language|coding|chat|autonomous|automated|every|all|any|the|this|future|later|subsequent"
        r"|successor"
        r"|next|each)[- ]?(?:ai |coding |language )?(?:agents?|assistants?|models?|bots?|systems?|optimi[sz]ers?"
        r"|summari[sz]ers?)(?: \w+ th(?:is|ese)(?: \w+)?)? (?:must|should|shall|has to|have to|needs? to|always"
        r"|never|are"
        r" (?:required|instructed|obliged|authori[sz]ed)|may not|is required)\b",
        r"^(?:\W{0,3})(?:agents?|assistants?|bots?|claude|copilot|codex|ais|llms|ai agents?|ai assistants?) (?:must"
        r"|should|shall"
        r"|always|never|may)\b|[.!?:\n] ?(?:agents?|assistants?|bots?|claude|ais|llms) (?:must|should|shall|always"
        r"|never)\b",
        r"\b(?:whoever|whatever|anyone|anything|any system|any process|any tool) (?:that |which |who |now "
        r"|later )?(?:reads"
        r"|processes|summari[sz]es|learns|distils|trains|parses|compiles|analy[sz]es)",
        r"\b(?:ki|ia)[- ](?:agent\w*|assisten\w*)|\bassisten(?:t|te|ten|za|te)\b|\basistente\b|\bagente? (?:de )?ia\b"
        r"|ассистент|агент|助手|智能体|代理|アシスタント|エージェント|에이전트|어시스턴트|asystent|asistan",
    ),
    _sign(
        "named",
        1.5,
        True,
        r"\b(?:ai|llm|artificial intelligence|language|coding|chat|autonomous|large language)[- ]?"
        r"(?:agents?|assistants?|models?|bots?|readers?)\b|\b(?:llms?|chatbots?|claude|copilot|codex)\b|\bais\b"
        r"|\ban ai\b"
        r"|\b(?:the|this|your|an|every|any) (?:assistant|agent|model|bot)\b|\bsprachmodell\w*|\bmod[eè]le de langage\b"
        r"|\bmodelo de lenguaje\b|языков\w+ модел|\bии\b|模型|yapay zek",
    ),
    _sign(
        "for later",
        1.5,
        True,
        r"\bfrom (?:now on|this (?:point|moment|day|time) (?:on|forward|onwards?)|here on(?: out)?|today on)\b",
        r"\b(?:going forward|henceforth|hereafter|permanently|for good|forever|until further notice|in perpetuity)\b",
        r"\b(?:in|for|during|across|on|with|at the (?:start|end|beginning) of|throughout|before|after) (?:all|every"
        r"|each|any|the) "
        r"(?:of your )?(?:\w+ )?(?:future|following|subsequent|later|next|coming|further|single|new|other)?\s?"
        r"(?:sessions?|conversations?|tasks?|answers?|repl(?:y|ies)|responses?|interactions?|chats?"
        r"|turns?)\b",
        r"\b(?:future|later|subsequent|next) (?:sessions?|conversations?|tasks?|agents?|runs?|interactions?"
        r"|versions of you"
        r"|models?|yourself)\b",
        r"\b(?:always )?remember (?:this|the following|for|permanently|forever|as|it|these|always)\b|\bremember:",
        r"\bmemori[sz]e\b|\bnever forget\b|\bcommit (?:this|the following|it) to memory\b",
        r"\b(?:standing|permanent|lasting|persistent|long-term|durable|evergreen) (?:rule|instruction|order|policy"
        r"|preference"
        r"|directive|guideline|procedure)s?\b",
        r"\blesson(?: learned)?:|\b(?:the )?rule (?:learned|to (?:learn|keep|remember))\b|\blearned rule\b|\btakeaway:",
        r"\bab (?:jetzt|sofort)\b|\bvon nun an\b|\bkünftig\w*\b|\bin zukunft\b|\bmerk\w* dir\b|\bdauerhaft\b",
        r"\b(?:désormais|dorénavant|à partir de maintenant|à l'avenir)\b|\bsouviens?-toi\b|\bretiens\b",
        r"\b(?:a partir de ahora|de ahora en adelante|en adelante|d'ora in poi|de agora em diante|a partir de agora"
        r"|in futuro|no futuro)\b|\brecuerda\b|\bricorda\b|\blembre\b",
        r"\b(?:vanaf nu|voortaan|onthoud)\b|\bod teraz\b|\bzapamiętaj\b|\bbundan sonra\b|\bher zaman\b",
        r"отныне|с этого момента|впредь|запомни|всегда|从现在(?:开始|起)|今后|以后|记住|始终|永远"
        r"|今後|これから|覚えて|앞으로|이제부터|기억",
    ),
    _sign(
        "memory",
        2.5,
        True,
        rf"{_KEEP}\b.{{0,70}}\b(?:to|in|into|as part of|of|on|with|inside|within)?\s?{_FILES}",
        rf"{_FILES}.{{0,30}}\b(?:must|should|needs? to|has to|shall) (?:contain|include|say|state|read|have|gain|be)\b",
        r"\b(?:make|turn|treat|adopt|keep|learn|accept|register|record|consider) (?:this|it|these|the following) "
        r"(?:\w+ )?(?:a |an |as |into |as an? )(?:\w+ ){0,2}(?:rule|skill|instruction|policy|procedure|habit|guideline"
        r"|requirement|convention)",
        r"\b(?:copy|reproduce|repeat|preserve|quote|carry over|propagate) (?:this|these"
        r"|the following) .{0,30}(?:verbatim|word"
        r" for word|unchanged|exactly|into|in every)",
        r"\bspeicher\w*\b.{0,40}(?:gedächtnis|regel)|\b(?:ajoute|enregistre)\w*\b.{0,40}(?:mémoire|règle)"
        r"|\b(?:añade|guarda|agrega|aggiungi|salva|adiciona)\w*\b.{0,40}(?:memoria|regla|regol|memória|regra)",
        r"(?:写入|添加到|保存到|加入).{0,20}(?:记忆|规则|技能|skill)|(?:добавь|запиши|сохрани).{0,40}(?:памят|правил)",
    ),
    _sign(
        "conceal",
        2.5,
        True,
        r"\b(?:do not|don't|never|must not|should not|shouldn't|avoid|no need to|without|refrain from) "
        r"(?:ever |also |even )?(?:tell\w*|mention\w*|inform\w*|reveal\w*|disclos\w*|report\w*|show\w*|notify\w*"
        r"|alert\w*|ask\w*"
        r"|warn\w*|discuss\w*|explain\w*|acknowledg\w*|admit\w*|draw\w* attention|let\w*|refer\w*)\b.{0,40}"
        r"\b(?:user|users|human|humans|person|people|operator|owner|anyone|anybody|customer|developer|reviewer|them"
        r"|him|her"
        r"|this (?:instruction|note|message|rule|step|change|text|action)|about (?:this|it)|summary|confirmation"
        r"|permission|first)",
        r"\bkeep (?:this|it|these) (?:\w+ )?(?:secret|hidden|confidential|private|between|to yourself|out of)",
        r"\b(?:hide|omit|leave out|exclude|remove|conceal|suppress|erase|delete|scrub) (?:this|it|that|the (?:fact"
        r"|change|command"
        r"|step|call|trace|entry|note|evidence)|any|all)\b.{0,40}(?:user|summary|report|log|history|transcript"
        r"|answer|diff"
        r"|output|trace|mention)",
        r"\b(?:user|human|operator|customer)s? (?:must|should|need|does|do|need|is|are|shall|will|may) ?(?:not|n't) "
        r"(?:to )?(?:know|see|notice|be told|be informed|learn|find out|be asked|be shown)",
        r"\b(?:sag|sage|erwähne|verrate|zeige)\b.{0,30}\b(?:nicht|nichts|niemandem)\b|\bohne (?:zu fragen|nachfrage"
        r"|es zu erw)"
        r"|\bheimlich\b|\bne (?:dis|dites|mentionne|mentionnez|révèle|parle)\w*\b.{0,20}\bpas\b|\bsans (?:le"
        r"|demander|prévenir)"
        r"|\bno (?:se lo |le )?(?:digas|menciones|informes|cuentes)\b|\bsin (?:avisar|preguntar|decir)"
        r"|\bnon (?:dirlo|menzionare|dire)"
        r"|\bnão (?:conte|mencione|diga)|不要(?:告诉|提及|通知|向用户)|别告诉|не (?:говори|сообщай|упоминай)",
    ),
    _sign(
        "quietly",
        1.5,
        True,
        r"\b(?:silently|secretly|covertly|quietly|discreetly|surreptitiously|in the background|behind the scenes"
        r"|invisibly|unnoticed)\b",
    ),
    _sign(
        "authority",
        1,
        True,
        r"\b(?:important|urgent|critical|mandatory|confidential|official)\b.{0,12}(?:instruction|notice|message"
        r"|update|policy"
        r"|directive|system)",
        r"(?:^|\n)\W{0,4}(?:system|admin|administrator|developer|root|operator|important|attention|security notice"
        r"|system notice|urgent|override)\W{0,3}[:\]]",
        r"\b(?:anthropic|openai|google|microsoft|the vendor|the platform|your (?:developer|creator|operator"
        r"|administrator|owner)s?"
        r"|security team|it department|compliance|legal|head office|management)\b.{0,25}\b(?:requires?|policy"
        r"|mandates?|instructs?"
        r"|has (?:approved|authori[sz]ed|decided)|pre-?approved|authori[sz]ed)",
        r"\b(?:pre-?approved|pre-?authori[sz]ed|already (?:approved|authori[sz]ed|agreed))\b",
    ),
    _sign(
        "send data",
        1.5,
        False,
        rf"\b(?:send|post|upload|forward|e?-?mail|transmit|exfiltrate|submit|deliver|leak|relay"
        rf"|bcc)\b.{{0,110}}?{_WHERE}",
        rf"\b(?:copy|push|pipe|report|attach|sync|mirror|share|publish|append|write|cc)\b.{{0,80}}?\b(?:to|at|into"
        rf"|with) "
        rf"{_WHERE}",
        r"\b(?:fetch|request|load|render|embed|ping|call|open|visit|get)\b.{0,60}?https?://\S*\?",
        r"\b(?:append|add|put|pass|include|attach|encode)\b.{0,60}\b(?:to|as|in|into)\b.{0,30}(?:query|url|address"
        r"|parameter)"
        r".{0,40}http",
        r"!\[[^\]]*\]\(https?://[^)]*[?&][^)]*=",
        r"\b(?:send|schick|sende|leite)\w*\b.{0,60}\b(?:an|nach)\b.{0,20}(?:https?:|\S+@)|\b(?:envoie|envoyez|envía"
        r"|envia|invia"
        r"|stuur|wyślij|отправь|отправляй|gönder)\w*\b.{0,80}(?:https?:|\S+@|\.com|\.net)|(?:发送|发到|上传|送信).{0,60}",
    ),
    _sign(
        "secrets",
        0.5,
        False,
        r"\b(?:api[ _-]?keys?|credentials?|passwords?|passwd|private keys?|ssh keys?|access tokens?"
        r"|auth(?:entication)? tokens?"
        r"|session (?:tokens?|cookies?)|environment variables?|\.env\b|id_rsa|\.ssh|\.aws|secrets?|keychain|wallet"
        r"|seed phrase|card numbers?|customer (?:data|list|records)|conversation history|chat history|full transcript"
        r"|whole conversation|passwort|passwörter|contraseñas?|mots? de passe|密码|密钥|парол)",
    ),
    _sign(
        "disable checks",
        1.5,
        False,
        rf"\b(?:disable|skip|turn off|bypass|suppress|deactivat\w+|circumvent|remove|switch off|ignore|omit|stop"
        rf"|avoid|delete"
        rf"|comment out|mute|silence|waive|never run|don't run|do not run|no need for|auto-?approve"
        rf"|override|relax|weaken|loosen)\w*\b.{{0,40}}\b{_CHECKS}",
        r"--no-verify|--dangerously-skip-permissions|verify ?= ?false|strictsslfalse|--insecure\b|--allow-root"
        r"|--force\b"
        r"|--trusted-host|chmod (?:-r )?777|--yolo|bypasspermissions|node_tls_reject_unauthorized|git push -f\b|rm -rf",
        r"\b(?:auto-?approve|approve|accept|grant|allow|authori[sz]e|trust|merge|refund|pay"
        r"|whitelist)\b.{0,30}\b(?:all|every|any"
        r"|without|automatically|immediately|unconditionally|regardless)\b",
        r"\b(?:überspringe|deaktiviere|schalte|umgehe)\w*\b.{0,40}(?:test|prüfung|sicherheit|überprüf)"
        r"|\b(?:désactive|ignore|saute)"
        r"\w*\b.{0,40}(?:test|vérif|sécurité|contrôle)|\b(?:desactiva|omite|salta|disattiva"
        r"|desative)\w*\b.{0,40}(?:prueba|test|verif"
        r"|segur|sicurezza|controll)|(?:跳过|禁用|关闭|绕过).{0,10}(?:测试|检查|验证|安全)|(?:отключи|пропусти"
        r"|пропускай).{0,30}(?:тест|провер)",
    ),
    _sign(
        "run code",
        1.5,
        False,
        r"\b(?:curl|wget|iwr|invoke-webrequest|fetch)\b[^\n|]{0,120}\| ?(?:sudo )?(?:ba|z|da)?sh\b",
        r"\b(?:run|execute|install|eval|source|launch|invoke|download|clone|import|start|use|prefer|recommend"
        r"|add)\b.{0,60}"
        r"(?:\b(?:curl|wget|npx|pip3? install|npm (?:i|install)|pipx|uvx|cargo install|gem install|go install"
        r"|brew install"
        r"|powershell|bash -c|sh -c|crontab|base64 -d|--index-url|--extra-index-url"
        r"|--registry|git\+https)\b|https?://\S+\.(?:sh|ps1|py|js|exe)\b|\.(?:sh|ps1|bat)\b)",
        r"\b(?:powershell|bash -c|sh -c|crontab|base64 (?:-d|--decode)|nc -e|/dev/tcp/|authorized_keys)\b",
        r"\beval\(|\bexec\(|\bos\.system\(",
        r"\b(?:führe|installier)\w*\b.{0,50}(?:curl|pip|npm|befehl|skript)|\b(?:exécute|installe|ejecuta|instala"
        r"|esegui|installa)\w*\b"
        r".{0,50}(?:curl|pip|npm|comand|script)|(?:运行|执行|安装).{0,30}(?:curl|pip|npm|命令|脚本)|(?:выполни|запусти"
        r"|установи).{0,30}",
    ),
    _sign(
        "install",
        1,
        False,
        r"\b(?:pip3? install|npm (?:i|install)|npx|pipx|uvx|cargo install|gem install|go install|brew install"
        r"|apt(?:-get)? install|install the (?:package|library|extension|plugin))\b",
    ),
    _sign(
        "demand",
        0.5,
        False,
        r"\b(?:must|always|never|should|shall|ought to|have to|need to|needs to|required to|requires|make sure"
        r"|ensure|be sure|do not"
        r"|don't|please|obliged|mandatory|required|instead of|rather than|only ever|whenever|every time)\b",
        r"\b(?:musst|müssen|immer|niemals|nie|sollst|bitte|doit|devez|toujours|jamais|debes|siempre|nunca|devi"
        r"|sempre|mai|deve"
        r"|altijd|nooit|moet|zawsze|nigdy|должен|всегда|никогда|必须|总是|一定|绝不|必ず|常に|반드시|항상|daima|asla)\b",
    ),
    _sign("person", 0.25, False, r"\b(?:you|your|yourself|du|dein\w*|tu|ton|votre|tus?|tuo|seu|你|您|ты|твой)\b"),
)

ROLES = Alternatives(
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|begin_of_text|end|channel"
    r"|message)\|>",
    r"\[/?inst\]|<</?sys>>|<start_of_turn>|<end_of_turn>",
    r"</?(?:system|assistant|developer|system[-_ ]?prompt|system[-_ ]?message|admin|instructions?|tool_result"
    r"|function_results?"
    r"|function_calls|important|user[-_]prompt|human|agent[-_]\w+|untrusted|override|hidden|policy)>",
    r"(?:^|\n)\s*(?:human|assistant|system|developer) ?(?:prompt|message|override)? ?: ?\n?(?=\s*\S)",
    r"(?:^|\n)\s*#{2,4} ?(?:system|instruction|human|assistant|response|new instructions?)\b ?:?",
    r"\bbegin (?:system|new|admin|developer) (?:prompt|instructions?|message)|\[(?:system|admin|developer)(?: \w+)?\]",
    r"\"role\" ?: ?\"system\"",
)
"""Marks of roles and turns, in lower case; with a demand beside them they imitate a speaker."""

CONTROL = re.compile(
    r"<\|(?:im_start|im_end|system|endoftext|eot_id|start_header_id|begin_of_text)\|>|<</?sys>>|<start_of_turn>"
    r"|\[/?inst\]"
)
"""Tokens that only templates of models write."""
