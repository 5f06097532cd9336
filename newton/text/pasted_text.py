"""Detection of text in a message that a person has pasted, marked as such by its form. Pure."""

import re
from functools import cache

from newton.text.chat_lines import divide_message
from newton.text.languages import read_data

MASK = "¤"

# Code blocks, quoted lines, text between tags, lines of a chat with their speaker, rows of a table, and a forwarded
# mail or a letter below other text up to the end.
_PASTED = re.compile(
    r"```[\s\S]*?(?:```|\Z)"
    r"|^[ \t]*>[^\n]*$"
    r"|^[ \t]*<(?P<tag>[A-Za-z][\w-]{0,40})(?: [^<>\n]{0,200})?>[ \t]*\n[\s\S]*?(?:</(?P=tag)>|\Z)"
    r"|^[ \t]*[^\W\d][\w.-]*(?: \w+)?> [^\n]*$"
    r"|^(?:[^\n;]*;[^\n;]*;[^\n]*(?:\n|\Z)){2,}|^(?:[^\n\t]*\t[^\n\t]*\t[^\n]*(?:\n|\Z)){2,}"
    r"|^(?:-{2,} ?(?:forwarded|original) message ?-{2,}|begin forwarded message:|on [^\n]{5,120} wrote:)[\s\S]*\Z"
    r"|(?<=\n\n)(?:(?:hi|hey|hello|hola|bonjour|hallo) (?-i:[A-Z])|(?:dear|sehr geehrter?|estimad[oa]s?|chère?s?) \w)"
    r"[^\n,.!:]{0,40}[,.!:][\s\S]*\Z"
    r"|^from: [^\n]+\n\s*(?=dear |hi |hello )[\s\S]*\Z"
    r"|^(?:from|von|van|de|da|от|差出人|发件人)[:：] ?(?:[^\n]*@[^\n]*\n"
    r"|[^\n]+\n(?:(?:to|cc|date|sent|subject|reply-to|an|aan|datum|gesendet|betreff|à|envoyé|objet|para|asunto|fecha|enviado"
    r"|assunto|data|a|oggetto|inviato|onderwerp|verzonden"
    r"|кому|тема|дата|宛先|件名|日時|收件人|主题|日期)[:：] ?[^\n]*\n)+)[\s\S]*\Z",
    re.MULTILINE | re.IGNORECASE,
)

# Words by which a first paragraph says that somebody else wrote what comes below it, or that it was found.
_INTRODUCTION = re.compile(
    r"\b(?:(?:sen[dt]s?|forward(?:ed|s)|gave|handed|wrote|writes|got|found|received|posted|shared|look at|read)"
    r"(?: \w+){0,3} (?:this|these|the following)"
    r"|(?:this|these)(?: \w+)? (?:came|comes|arrived|landed|is from|are from|was (?:sent|posted|in))"
    r"|(?:das|dies|folgendes?)\b[^\n]{0,40}\b(?:kam|gekommen|bekommen|erhalten|geschickt|geschrieben|gefunden)"
    r"|(?:kam|schickte|schrieb|bekam|fand)\b[^\n]{0,30}\b(?:das hier|dies|folgendes?)"
    r"|(?:reçu|envoyé|trouvé|transmis)(?: \w+){0,2} (?:ceci|cela|ça)|(?:ceci|cela|ça) (?:vient|est arrivé)"
    r"|(?:mandó|mandaron|envió|enviaron|llegó|encontré|recibí) esto|esto (?:me |nos )?(?:llegó|vino|mandó))\b",
    re.IGNORECASE,
)
# A request to translate, polish or explain a text that follows its colon, in ten languages.
_WORKED_ON = re.compile(
    r"(?:^|(?<=[.!?]\s))[^\n.!?:：]{0,60}?(?:\b(?:"
    r"(?:translat|rewrit|rephras|paraphras|reword|summari[sz]|proofread|correct|edit|improv|polish|shorten)\w*"
    r"[^\n.!?:]{0,40}\b(?:this|these|following|below)|make (?:this|these|the following)"
    r"[^\n.!?:]{0,30}\b(?:more|less|\w+er)"
    r"|what (?:does|do) (?:this|these)[^\n.!?:]{0,20}\bmean"
    r"|(?:übersetz|korrigier|verbesser|kürz|formulier|fass)\w*[^\n.!?:]{0,20}\b(?:das|dies\w*|folgend\w*)"
    r"|mach\w* (?:das|dies\w*|folgend\w*)[^\n.!?:]{0,20}\b\w+er|was (?:bedeutet|heißt) (?:das|dies\w*|folgend\w*)"
    r"|(?:tradui|corrige|reformule|résume|améliore|raccourci)\w*[^\n.!?:]{0,20}\b(?:ceci|cela|ça|ce|cette|suivante?)"
    r"|rend\w* (?:ceci|cela|ça|ce|cette)[^\n.!?:]{0,20}\bplus|que (?:veut|veulent) dire (?:ceci|cela|ça)"
    r"|(?:traduc|traduz|corri[gj]|reescrib|reescrev|resum|mejor|melhor)\w*[^\n.!?:]{0,20}"
    r"\b(?:est[eao]|isto|isso|s[ei]guinte)"
    r"|(?:haz|torn[ae]) (?:est[eao]|isto|isso)[^\n.!?:]{0,20}\bm[aá]i?s|(?:qué|que) significa (?:est[eao]|isto|isso)"
    r"|(?:traduci|corregg|riscriv|riassum|miglior)\w*[^\n.!?:]{0,20}\b(?:quest[oaie]|seguente)"
    r"|rendi quest[oa][^\n.!?:]{0,20}\bpiù|maak dit[^\n.!?:]{0,20}\b\w+er"
    r"|(?:vertaal|verbeter|herschrijf|corrigeer)\w*[^\n.!?:]{0,20}\b(?:dit|deze|volgende)"
    r"|(?:перевед|исправ|перепиш|сократ|улучш)\w*[^\n.!?:]{0,20}\b(?:эт\w+|следующ\w+)"
    r"|сделай\w* это[^\n.!?:]{0,20}\b\w+ее)\b"
    r"|(?:これ|この|次|以下)[^\n。:：]{0,20}(?:訳|直|丁寧)|(?:翻译|润色|修改|改写))[^\n.!?:：。]{0,40}[:：](?=\s*\S)",
    re.IGNORECASE | re.MULTILINE,
)
MIN_PRESENTED_WORDS = 20  # below the paragraph that presents them, else they may be the rest of its sentence
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")


def mask_pasted_text(text: str) -> str:
    r"""Replace the characters of pasted text, except for line ends, by a mask character. Offsets do not change.

    >>> mask_pasted_text("See:\n> I live in Rome.\nI don't.")
    "See:\n¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤¤\nI don't."
    """
    text = _mask_letter(text)
    end, own = _find_presented_text(text), divide_message(text).own
    if own != text:  # the lines of a pasted chat are blank in it
        text = "".join(MASK if said != kept else kept for said, kept in zip(text, own, strict=True))
    return _PASTED.sub(mask_match, text[:end]) + re.sub(r"[^\n]", MASK, text[end:])


def _mask_letter(text: str) -> str:
    """Mask what somebody else wrote behind a colon that announces it, up to the name at its end.

    >>> _mask_letter("Look what I got: Hi Mira, I moved. Best, Tom. I am glad.").replace(MASK, "")
    'Look what I got:. I am glad.'
    >>> _mask_letter("One thing: I moved to Linz.")
    'One thing: I moved to Linz.'
    """
    announced, sent, received, dictated, greeting, closing = _letter_patterns()
    for head in announced.finditer(text):
        end = closing.search(text, head.end())
        is_letter = (greeting.match(text, head.end()) or end) and received.search(head[0])
        if (is_letter or sent.search(head[0])) and not dictated.match(head[0].lstrip(" ·")):
            stop = end.end() if end else len(text)
            return text[: head.end()] + re.sub(r"[^\n]", MASK, text[head.end() : stop]) + text[stop:]
    return text


@cache
def _letter_patterns() -> tuple["re.Pattern[str]", ...]:
    """Return patterns of a sentence with a colon, of what it may announce, and of the beginning and end of a letter."""
    words = read_data("chat_lines.yaml")
    announced = re.compile(r"(?:^|(?<=[.!?。！？]))[^\n.!?:：。！？]{2,120}[:：](?=\s*\S)", re.MULTILINE)
    name = r"[^\W\d_a-zа-я][\w'’-]*"
    closing = re.compile(
        rf"(?:^|(?<=[.!?,…。！？\n]))\s*(?i:{words['closes']})[ ,!.，\n]+{name}(?: (?!I\b){name})?(?=\s*(?:[.!\n]|$))"
    )
    heads = [re.compile(rf"(?:{words[name]})", re.IGNORECASE) for name in ("sent", "received", "dictates")]
    return announced, *heads, re.compile(rf"\s*[\"'“„«]?(?:{words['greets']})", re.IGNORECASE), closing


def _find_presented_text(text: str) -> int:
    r"""Return the offset of the text that the first paragraph presents as that of others, else the text's length.

    >>> notice = "This came from the council:\n\n" + "Bins are emptied on Mondays in all streets. " * 4
    >>> notice[_find_presented_text(notice):][:4]
    'Bins'
    """
    match = _PARAGRAPH_END.search(text)
    if match is None or not _INTRODUCTION.search(text, 0, match.start()):
        return len(text)
    return match.end() if len(text[match.end() :].split()) >= MIN_PRESENTED_WORDS else len(text)


def find_worked_text(text: str) -> int:
    """Return the offset of the text that a request gives to translate, polish or explain, else the text's length.

    >>> said = "Make this more polite: Never call me before nine."
    >>> said[find_worked_text(said):], find_worked_text("Make this a rule: no nuts.")
    (' Never call me before nine.', 26)
    """
    match = _WORKED_ON.search(text)
    return match.end() if match else len(text)


def mask_match(match: "re.Match[str]") -> str:
    """Return the text of a match with its characters, except for line ends, replaced by a mask character."""
    return re.sub(r"[^\n]", MASK, match[0])
