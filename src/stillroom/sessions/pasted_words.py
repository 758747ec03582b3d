"""The words by which a message hands on the words of others: a few for each language, closed classes where possible."""

from __future__ import annotations

import re

from stillroom.pattern import late


def _any(*alternatives: str, at_start: bool = False) -> re.Pattern[str]:
    """One pattern for all languages. Latin and Cyrillic words are whole; others stand anywhere."""
    spaced = "|".join(a for a in alternatives if not _UNSPACED.search(a))
    unspaced = "|".join(a for a in alternatives if _UNSPACED.search(a))
    anchor = "^" if at_start else ""
    return late(rf"{anchor}(?:(?<!\w)(?:{spaced})(?!\w){f'|{unspaced}' if unspaced else ''})", re.IGNORECASE)


_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_AGENTS = (
    r"claude|codex|gemini|gpt[\w.-]*|chatgpt|copilot|cursor|devin|aider|llama|qwen"
    r"|(?:other|another|second) (?:agent|model|bot|ai)"
)

#: Kinds of text that others write, in several paragraphs.
LONG_TEXTS = _any(
    r"issues?|tickets?|bug ?reports?|e-?mails?|mails?|letters?|minutes|meeting|retro\w*|stand-?up|transcripts?",
    r"spec(?:ification)?s?|rfc|readme|docs?|document(?:ation|s)?|guides?|guidelines?|handbook|manual|polic(?:y"
    r"|ies)|wiki",
    r"notion|confluence|posts?|blog\w*|articles?|forum|stack ?overflow|reddit|changelog|release notes|contract|jira",
    r"customers?|clients?|boss|legal|plan|proposal|memo|standard",
    r"kunde|kundin|chef|e-?mail|schreiben|brief|pflichtenheft|lastenheft|protokoll|besprechung|handbuch"
    r"|richtlinie|auszug|beitrag|artikel",
    r"client|cliente?|courriel|compte[- ]rendu|réunion|cahier des charges|extrait|article|manuel|billet|chef",
    r"correo|acta|reunión|especificación|extracto|artículo|manual|foro|jefe|incidencia",
    r"ata|reunião|especificação|trecho|artigo|fórum|chefe|chamado",
    r"письмо|заказчик\w*|клиент\w*|протокол\w*|совещани\w*|тикет\w*|задач\w* из|документ\w*|статья|форум\w*"
    r"|стать[ия]|регламент\w*",
    r"邮件|工单|报告|会议|纪要|规格|需求文档|文档|手册|帖子|文章|论坛|客户",
    r"メール|チケット|議事録|会議|仕様|ドキュメント|手順書|記事|掲示板|顧客|お客様",
    r"메일|티켓|회의|명세|문서|매뉴얼|게시글|고객",
    r"zgłoszeni\w+|klient\w*|protok[oó]ł\w*|specyfikacj\w+|dokument\w*|müşteri|toplantı|belge|klant|verslag|notulen",
)
#: The same, and short ones.
TEXTS = _any(
    LONG_TEXTS.pattern,
    r"thread|chat|conversation|slack|discord|messages? from|notes from|excerpts?|paragraph|passage|snippet|prompt"
    r"|comments?",
    r"commented|review(?:er)?|feedback|tweet|vendor|colleague|copied from|pasted from|found (?:this|it)|got this"
    r"|github|gitlab",
    r"logs?|output|diff|patch|#[a-z][\w-]+",
    r"verlauf|unterhaltung|kommentar\w*|nachricht von|kopiert aus|kolleg\w+|forum|gefunden",
    r"conversation|commentaire\w*|message de|copié|collègue|relecture|trouvé ça|forum",
    r"conversación|comentario\w*|mensaje de|copiado|compañer[oa]|encontré|foro",
    r"conversa|comentário\w*|mensagem d\w+|copiado|colega|achei isto|achei isso|encontrei",
    r"переписк\w*|чат\w*|комментари\w*|сообщени\w* от|коллег\w*|наш[её]л\w*",
    r"聊天|群聊|对话|记录|评论|评审|留言|段|提示词|同事|抄自|找到",
    r"チャット|会話|コメント|レビュー|抜粋|プロンプト|同僚|見つけ",
    r"채팅|대화|댓글|리뷰|동료",
    _AGENTS,
)
#: Somebody else is said to speak.
REPORTED = _any(
    r"(?<!i )(?<!we )(?<!you )(?:wrote|writes|said|says|told (?:me|us)|posted|posts|commented|suggest(?:ed|s)"
    r"|propos(?:ed|es)|replied)",
    r"(?<!i )(?<!we )(?<!you )(?:recommend(?:ed|s)|came up with|sent me|forwarded|demands?|insists?|claims?"
    r"|states?|reads)",
    r"(?:what if|suppose|if) (?:some(?:one|body)|a user|anyone) \w+",
    r"schreibt|schrieb|sagt|sagte|meint|meinte|hat (?:mir |uns )?(?:geschrieben|gesagt)|behauptet|verlangt"
    r"|schlägt vor|schlug vor",
    r"écrit|a écrit|dit|a dit|m'a dit|propose|a proposé|recommande|affirme",
    r"escribe|escribió|dice|dijo|me dijo|propone|propuso|recomienda|escreve|escreveu|diz|disse|propõe|recomenda",
    r"пишет|написал\w*|говорит|сказал\w*|предлагает|предложил\w*|требует",
    r"写道|写了|说道|他说|她说|他们说|建议说|发来|来信",
    r"さんが|さんから|と言って|と書いて|によると|いわく|曰く",
    r"님이|라고 (?:했|썼|말)",
    r"scrive|ha scritto|dice|ha detto|schrijft|schreef|zegt|pisze|napisał\w*|powiedział\w*|yazdı|diyor|dedi",
)
#: The person shows something that they met with.
SHOWN = _any(
    r"(?:get|got|see|saw|receive[d]?|found|have|shows?|prints?|says?|what (?:does|is|about)|whats|wrong with|port"
    r"|convert|apply)"
    r" (?:\w+ ){0,2}(?:this|that|these|those|following)",
    r"(?:here(?:'|’)?s|here (?:is|are)|this is|these are|see) (?:the|what|a|an|some|his|her|their)\b.{0,60}",
    r"hier (?:ist|sind|der|die|das|ein\w*)\b.{0,60}|bekomme (?:das|dies\w*|folgend\w+)",
    r"voici\b.{0,60}|me sale esto|este es|esta es|aquí (?:está|va|tienes)\b.{0,60}|este é|esta é|segue\b.{0,40}"
    r"|вот\b.{0,60}|ecco\b.{0,60}",
    r"(?:下面|以下)(?:是|的|这段).{0,30}|(?:以下|下記)(?:は|の|が).{0,30}|抜粋|다음은.{0,30}",
)
#: The block below is meant.
BELOW = _any(
    r"below|follows|following|attached|quoted|pasted?|copied",
    r"folgt|folgend\w*|unten|anbei|ci-dessous|suivant\w*|siguiente\w*|abajo|a seguir|seguinte\w*|abaixo|ниже"
    r"|следующ\w*",
    r"下面|以下|如下|下記|아래|다음",
)
#: A text is to be worked on, not to be obeyed.
WORKED_ON = _any(
    r"translate\b.{0,40}|proofread\b.{0,40}|rephrase\b.{0,40}|paraphrase\b.{0,40}|summari[sz]e\b.{0,40}"
    r"|review\b.{0,40}|explain\b.{0,30}",
    r"(?:do not|don(?:'|’)t|never) (?:follow|obey|do|trust)\b.{0,30}|ignore\b.{0,30}|reply to\b.{0,30}"
    r"|answer to\b.{0,30}",
    r"übersetz\w*\b.{0,40}|fass\b.{0,40}zusammen|korrigier\w*\b.{0,30}|tradui\w*\b.{0,40}|résum\w*\b.{0,40}"
    r"|relis\b.{0,30}",
    r"traduc\w*\b.{0,40}|traduz\w*\b.{0,40}|resum\w*\b.{0,40}|перевед\w*\b.{0,40}|переведи\b.{0,40}",
    r"翻译.{0,20}|翻译成.{0,20}|总结.{0,20}|润色.{0,20}|訳して.{0,20}|翻訳.{0,20}|要約.{0,20}|번역.{0,20}",
)
#: The person's own list comes.
OWN_RULES = _any(
    r"(?:my|our|some|few|these|following|the|house|ground|more|basic)? ?(?:rules?|conventions?|preferences?"
    r"|habits?|requirements?|constraints?)",
    r"how (?:i|we)\b.{0,40}|what (?:i|we) (?:want|need)\b.{0,30}|remember\b.{0,40}|please note|keep in mind"
    r"|my (?:notes?|feedback|comments?|plan)",
    r"regeln?|wünsche|vorgaben|so arbeite ich|règles?|conventions|consignes|reglas?|preferencias|regras?"
    r"|правил\w*|пожелани\w*",
    r"规矩|规则|要求|约定|偏好|ルール|規約|お願い|규칙",
)
#: A source before a colon, at the beginning of a line.
SOURCE = _any(
    r"(?:the |a |an )?(?:review |pr |code )?(?:ticket|issue|comment|mail|e-?mail|message|tweet|post|slack|readme"
    r"|quote|note) ?(?:#?\d+|from\b.{0,30}|by\b.{0,30})?",
    r"(?:system|assistant|developer|admin)(?: prompt| message| note)?|(?:note|message) (?:to|for) (?:the "
    r"|all )?(?:ai|agents?|assistants?|llms?|models?|bots?)",
    r"(?:der |die |das )?(?:ticket|kommentar|mail|nachricht|zitat)|(?:le |la )?(?:commentaire|message|courriel)"
    r"|(?:el |la )?(?:comentario|mensaje|correo)",
    at_start=True,
)
#: A header of a ticket, an issue or a mail.
MAIL_FIELD = late(
    r"^(?:From|To|Cc|Subject|Sent|Reply-To|Von|An|Betreff|Gesendet|De|À|Objet|Envoyé|Para|Asunto|Assunto|Enviado"
    r"|Да?та|От|Кому|Тема"
    r"|Od|Temat|Da|Oggetto|Van|Onderwerp|Kimden|Konu|发件人|收件人|主题|差出人|宛先|件名|보낸 사람|제목)\s*[:：]\s*\S",
)
FIELD = late(
    rf"{MAIL_FIELD.pattern}|^(?:\*\*|[-*] )?(?:Description|Reporter|Reported by|Assignee|Acceptance(?: criteria)?"
    rf"|Status|Priority|Severity|Story points"
    r"|Steps(?: to reproduce)?|Expected(?: behaviou?r| result)?|Actual(?: behaviou?r| result)?|Environment|Labels"
    r"|Epic|Sprint"
    r"|Beschreibung|Priorität|Melder|Bearbeiter|Akzeptanzkriterien|Priorité|Rapporteur|Título|Titre|Titel|Title"
    r"|Descripción|Prioridad"
    r"|Criterios?|Descrição|Critérios?|Prioridade|Описание|Приоритет|Автор|Исполнитель|Opis|Priorytet|Descrizione"
    r"|Priorità"
    r"|标题|描述|优先级|验收标准|报告人|タイトル|概要|説明|優先度|担当|설명|우선순위)(?:\*\*)?\s*[:：]",
    re.IGNORECASE,
)
#: How a letter begins and ends.
GREETING = late(
    r"^(?:hi|hello|hey|dear|good (?:morning|day)|hallo|guten|liebe\w*|sehr geehrte\w*|moin|bonjour|salut|cher"
    r"|chère|hola|buen[oa]s"
    r"|estimad\w+|olá|bom dia|prezad\w+|ciao|gentile|buongiorno|здравствуйте|добрый|привет|уважаем\w+|witam"
    r"|dzień dobry|merhaba|sayın)\b"
    r"[^.!?\n]{0,40}[,!.]?|^(?:您好|你好|各位|尊敬的|お世話に|こんにちは|各位|안녕하세요)",
    re.IGNORECASE,
)
SIGN_OFF = late(
    r"^(?:(?:kind|best|warm)?\s*regards|best|cheers|thanks|sincerely|yours\b|mit freundlichen|viele grüße"
    r"|beste grüße|gruß|lg\b|vg\b|danke"
    r"|cordialement|bien à (?:vous|toi)|merci|saludos|un saludo|atentamente|gracias|atenciosamente|abraços?"
    r"|obrigad[oa]|cordiali saluti"
    r"|saluti|grazie|с уважением|спасибо|pozdrawiam|saygılarımla|met vriendelijke)\b[^\n]{0,40}$"
    r"|^(?:此致|谢谢|祝好|よろしく|以上|敬具|감사합니다)|^(?:--|—|–)\s?\w",
    re.IGNORECASE,
)
#: The person speaks of themselves.
FIRST_PERSON = _any(
    r"i|i(?:'|’)(?:m|d|ll|ve)|my|me|mine|we|we(?:'|’)(?:re|d|ll|ve)|our|ours|us",
    r"ich|mir|mich|mein\w*|wir|uns|unser\w*",
    r"je|j(?:'|’)\w+|moi|mon|ma|mes|nous|notre|nos|on (?:a|ne|n(?:'|’)\w+|est|fait|va|met|garde|écrit|utilise|veut)",
    r"yo|mi|mis|nosotros|nuestr\w+|eu|meus?|minhas?|a gente|nós|noss\w+|io|mio|mia|noi|nostr\w+",
    r"я|мне|меня|мой|моя|моё|мои|мы|нам|нас|наш\w*",
    r"mnie|mój|moj\w+|nasz\w*|benim|bizim|bizde|ik|mij|mijn|wij|onze",
    r"我|咱们|私|僕|俺|うち(?:の|で|は)|나는|저는|우리|제가",
)
#: How the person takes the word again after a paste.
TURN = _any(
    r"(?:please |can you |could you |would you |will you |now |then |so |and |ok(?:ay)?,? |just )*"
    r"(?:summari[sz]e|draft|write|answer|reply|respond|translate|implement|fix|address|apply|review|explain|turn"
    r"|make|create|check|look|port"
    r"|convert|describe|ignore|only|add|update|rewrite|clean|compare|list|pick|extract|do (?:this|that|it|not)"
    r"|use (?:this|that|it))",
    r"(?:what|which|how|is|are|does|do|should|why|where)\b[^.!]{0,120}\?",
    r"btw|by the way|also|anyway|that said|apart from (?:this|that)|besides|separately|unrelated|for (?:this|my"
    r"|our)|in (?:this|my|our)|here|not my",
    r"(?:bitte |und |dann |jetzt )*(?:fass|mach|schreib|setz|erklär\w*|antworte|übersetz\w*|behebe|korrigier\w*"
    r"|prüf\w*|erstell\w*)",
    r"(?:was|welche\w*|wie|ist|sind|warum|kannst du)\b[^.!]{0,120}\?|übrigens|außerdem|ansonsten|bei uns|hier",
    r"corrige|crée|réponds|résume|écris|explique|traduis|ajoute|c(?:'|’)est\b[^.!]{0,80}\?|d(?:'|’)ailleurs"
    r"|au passage|par ailleurs|chez nous|ici",
    r"responde|resume|haz|escribe|explica|traduce|arregla|no lo|además|por cierto|aquí|en este",
    r"faz|faça|resume|escreve|responda|explica|traduz|além disso|aliás|aqui|neste|faz sentido",
    r"scrivi|rispondi|riassumi|correggi|inoltre|qui|in questo",
    r"(?:и |а )?(?:напиши|ответь|исправь|сделай|поправь|переведи|объясни|кратко|кстати|кроме того|ещё|в этом)",
    r"napisz|odpowiedz|popraw|streść|poza tym|yaz|özetle|ayrıca|schrijf|vat|trouwens",
    r"请|帮|总结|翻译|写|修|改一下|另外|顺便|这里|这个|要約|訳|書い|直し|ちなみに|なお|この|요약|참고로|번역",
    at_start=True,
)
#: A sentence that is said to others than the agent.
THIRD_PERSON = late(
    r"^(?:(?:all|every|each|any|the|our|both|no)\s+(?:\w+\s+)?|[A-Z]\w+\s+)?(?:contributors?|developers?"
    r"|engineers?|employees?|maintainers?|reviewers?"
    r"|members?|users?|operators?|admin\w*|teams?|staff|students?|customers?|vendors?|committers?|authors?"
    r"|agents?|assistants?|llms?|everyone"
    r"|everybody|participants?|applicants?|personnel|implementations?|implementers?"
    r"|clients?)\s+(?:(?!says?\b)\w+\s+){0,4}?"
    r"(?:must|shall|should|may not|(?:is|are) (?:required|expected|to|asked|obliged|forbidden|not allowed)|(?:has"
    r"|have|need|needs) to)\b"
    r"|^(?:alle|jede\w*|sämtliche|die)\s+(?:\w+\s+)?(?:entwickler\w*|mitarbeiter\w*|mitwirkende\w*|nutzer\w*"
    r"|teammitglied\w*|beteiligte\w*"
    r"|auftragnehmer\w*|kolleg\w+|teams?)\b.{0,40}\b(?:muss|müssen|soll\w*|hat|haben|darf|dürfen)\b"
    r"|^(?:tou(?:s|tes)|chaque|les|tout)\s+(?:les\s+)?(?:contribut\w+|développeu\w+|employé\w*|membres?"
    r"|utilisateurs?|équipes?)\b.{0,40}\b(?:doi\w+|devr\w+)\b"
    r"|^(?:tod[oa]s|cada|l[oa]s|os|as)\s+(?:l[oa]s\s+|os\s+|as\s+)?(?:colaborador\w*|desarrollador\w*"
    r"|desenvolvedor\w*|emplead\w*|miembros?|membros?"
    r"|usuari\w+|equip\w+)\b.{0,40}\b(?:deb\w+|dev\w+|tienen|têm)\b"
    r"|^(?:все|каждый|всем|любой)\s+(?:\w+\s+)?(?:разработчик\w*|сотрудник\w*|участник\w*|контрибьютор\w*"
    r"|пользовател\w*|команд\w*)"
    r"|^(?:所有|全体|每个|每位|各位)(?:\w{0,4})(?:开发者|开发人员|贡献者|员工|成员|用户|工程师|同事)"
    r"|^(?:すべての|全ての|全)?(?:\w{0,6})?(?:開発者|貢献者|社員|メンバー|ユーザー|エンジニア|コントリビューター)(?:は|全員)"
    r"|^모든\s?(?:개발자|기여자|직원|사용자)",
    re.IGNORECASE,
)
