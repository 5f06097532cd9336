"""Patterns of wishes on how every answer is given, such as its length, language, tone and units. Pure.

Such a wish holds for good without "always": it is on answers in the plural, on a feature of style, or on a unit. The
patterns match at the beginning of a sentence. A reference to one text ("in this letter") makes the sentence a request.
"""

import re

REPLIES = r"(?:answers|replies|responses|explanations|summaries|suggestions)"
STYLES = r"""(?:
    emojis?|emoticons|smileys|bullet[\ -]?(?:points|lists)|bullets|tables|lists|headings|headers|footnotes|exclamation\ (?:marks|points)
    |question\ marks|semicolons|(?:em[\ -])?dashes|hyphens|brackets|hashtags|capital\ letters|capitals|all\ caps|italics|bold
    |disclaimers|warnings|hedging|jargon|slang|buzzwords|clich[eé]s|metaphors|puns|jokes|sarcasm|irony|swear\ ?words|swearing
    |small\ ?talk|chit-?chat|filler|flattery|compliments|praise|pleasantries|greetings|apologies|introductions|intros
    |preambles?|sign-offs|lectures|lecturing|moralising|moralizing|repetitions?|markdown|html|code\ comments
    |(?:latin|foreign|long|difficult|big|fancy|technical)\ (?:words|terms)|abbreviations|acronyms|rhetorical\ questions
    |(?:medical|legal|financial|relationship|unsolicited|dating|diet)\ (?:advice|tips)|pet\ names|nicknames)"""
STYLES = re.sub(r"(?<!\\)\s+", "", STYLES).replace("\\ ", " ")
LANGUAGES = (
    "(?:english|german|french|spanish|italian|portuguese|dutch|russian|chinese|japanese|polish|swedish|danish|norwegian"
    "|finnish|greek|turkish|arabic|hindi|korean|ukrainian|czech|welsh|irish)"
)
UNITS = (
    r"(?:metric|imperial|celsius|fahrenheit|centigrade|kilomet(?:re|er)s|met(?:re|er)s|centimet(?:re|er)s|miles|feet|inches|kilo(?:gram)?s"
    r"|grams|pounds|stones?|litres|liters|cups|ounces|euros?|dollars|francs|yen|percent(?:ages)?|si units|utc|local time"
    r"|(?:the )?(?:24|12|twenty-four)[- ]?hour (?:clock|time|format)|iso (?:dates?|format)|lower ?case|tabs|spaces"
    rf"|(?:british|american|uk|us) (?:spelling|english)|(?:{LANGUAGES}|full|whole|plain) numbers)(?: units?| only)?"
)
MANNERS = (
    r"(?:blunt|brief|careful|casual|chatty|cheerful|clear|concise|concrete|critical|detailed|direct|emotional|enthusiastic"
    r"|factual|formal|frank|friendly|funny|gentle|honest|humorous|informal|kind|patient|personal|playful|polite|practical|precise"
    r"|professional|relaxed|respectful|serious|short|specific|straight|strict|technical|terse|thorough|transparent|verbose"
    r"|warm|wordy)"
)
_PLAIN = (
    rf"(?:(?:very|more|quite|really|nice and) )*(?:{MANNERS}|plain|simple|simpler|shorter|longer|long|easy|easier|complete|full|whole"
    r"|everyday|proper|normal|natural|short|basic|correct)"
)
_PLEASE = (
    r"(?:(?:can|could|would|will) you )?(?:(?:please|kindly|just|always|generally|try to|remember to|make sure to|i want you to"
    r"|i'd like you to|i would like you to|you (?:should|can|may|must|need to|have to)),? )*"
)
_KEEPING = "(?:keeping|using|making|writing|answering|replying|giving|showing|putting|adding|skipping|being|speaking|talking|avoiding|asking|citing)"
_NOT = r"(?:do not|don't|never|not)(?: ever)?"
_END = (
    r"(?=(?:,? (?:please|thanks|thank you|with me|to me|for me|from you|at all|ever|either|any ?more|always|in general"
    r"|generally|only|without [\w-]+|plain text|everywhere|throughout|if possible|when you (?:can|write|answer|reply|talk)\b.*|so much|all the time|every time"
    rf"|in (?:your|my|our) (?:{REPLIES}|chats|conversations|messages|writing|code)"
    r"|(?:when|whenever|if) (?:you|we) (?:talk|chat|write|answer|reply|speak)\w*(?: \w+)?"
    r"|(?:or|and|nor) (?:[\w-]+ ?){1,2}"
    r"|(?:not|no|just|only|instead of|rather than|over|except) [^,.:;]{2,40}"
    r"|(?:because|since|as|i'm|i am|i find|i don't|they|it|that's|that is)\b.*))*\W*$)"
)
_PLURALS = (
    "(?:prices?|temperatures?|amounts?|distances?|weights?|dates?|times?|lengths?|heights?|measure(?:ment)?s|quantities"
    "|sizes?|speeds?|costs?|numbers?|currenc(?:y|ies)|percentages?|money|everything|weather|recipes)"
)
_WRITE = r"(?:give|show|tell|quote|write|state|express|put|list|keep|convert|format|round)(?: me)?"
_FORMATS = rf"(?:{UNITS}|(?:day|month|year)[- ](?:first|month)\b.*|dd\W?mm\b.*|yyyy\b.*|iso\b.*|words|digits|whole \w+|\w+ decimals?(?: places)?)"
_AGREED = (
    r"(?:asked|told|gave|used|kept|wrote|showed|answered|replied|explained|said|checked|called|spoke|stuck to|skipped"
    r"|were (?:a (?:bit|little) )?(?:more|less)|(?:didn't|did not) (?:use|give|ask|tell|write|say|call|show|explain|add|start|end))"
)
_OF_ANSWERS = r"(?:keep|make|begin|start|end|finish|open|close|limit|put|include|add|write|format|leave|give|use|phrase)"

ORDERS = (
    rf"(?:would|do) you mind (?:not )?{_KEEPING} .*\b(?:in general|always|every time|from now on|in (?:the )?future|(?:your|my) {REPLIES})\b",
    # answers in the plural: "keep answers short", "don't start your answers with ..."
    rf"{_PLEASE}(?:{_NOT} )?(?:keep|make|limit|format|phrase) (?:all )?(?:of )?(?:your |my |the )?(?:[\w-]+ )?(?:{REPLIES}|sentences)\b",
    rf"{_PLEASE}(?:{_NOT} )?{_OF_ANSWERS}\b[^,.:;]{{0,60}} (?:your|my) (?:[\w-]+ )?{REPLIES}\b",
    rf"{_PLEASE}(?:give me |use )?(?:only )?{_PLAIN} (?:{REPLIES}|sentences|paragraphs)(?: only)?{_END}",
    rf"{_PLEASE}(?:answer|reply|respond|write|speak|talk|explain (?:things|everything|it all))(?: to me| me)?,? (?:only )?(?:in|with|using) "
    rf"{_PLAIN} (?:[\w-]+ )?(?:sentences|words|language|english|paragraphs|terms|prose|text|points){_END}",
    rf"{_PLEASE}use (?:only )?{_PLAIN} (?:[\w-]+ )?(?:sentences|words|language|english|paragraphs|terms){_END}",
    rf"{_PLEASE}(?:plain text|prose)(?: only)?,? (?:please|only|thanks|no {STYLES}){_END}",
    # features of style: "no emojis", "stop using semicolons", "skip the introductions"
    rf"{_PLEASE}(?:{_NOT} (?:use|add|include|write|put|send|give me|insert|do|make|want|need|bother with|start with|end with)"
    r"|no(?: more)?|avoid(?: using)?|skip|drop|leave out|leave off|omit|stop (?:using|adding|with|it with)|cut(?: out)?|spare me|less|fewer|go easy on"
    r"|lay off|without|i (?:don't|do not) (?:want|need)|i can do without|stay away from) (?:any |all |all the |the |so many |so much |too many |too much |those |your )?"
    rf"(?:{_PLAIN} )?(?:[\w-]+ (?:and|or) )?{STYLES}{_END}",
    rf"{_PLEASE}(?:stop|quit|avoid|{_NOT} (?:keep|start by|begin by|end by)) (?:apologi[sz]ing|lecturing|moralising|repeating (?:yourself|my|what i)"
    r"|hedging|flattering|praising|agreeing with everything|thanking|calling me|asking if|saying|telling me to|being so)\b",
    rf"{_PLEASE}(?:stop|{_NOT}) (?:repeat|repeating) (?:my (?:question|words|request)s?|what i)\b",
    rf"{_PLEASE}{_NOT} (?:apologi[sz]e|flatter me|lecture me|patronise me|patronize me|moralise|hedge|agree with everything|sugar-?coat){_END}",
    # units, numbers, spelling: "use the 24-hour clock", "temperatures in Celsius", "dates day first"
    rf"{_PLEASE}(?:use|stick (?:to|with)|stay with|work in|think in) (?:only )?(?:the )?(?:{UNITS}|{LANGUAGES})(?: for {_PLURALS})?{_END}",
    rf"{_PLEASE}(?:{_WRITE} )?(?:all |any |your )?{_PLURALS}(?: (?:should|must|are to|have to|need to) be| shall be| go)?(?: given| written| shown| quoted)?,? "
    rf"(?:always )?(?:(?:in|as|to|with|using) )?(?:the )?{_FORMATS}{_END}",
    rf"{UNITS}(?: for {_PLURALS})?,? (?:please|only|always){_END}",
    # tone and address: "treat me like an expert", "be more direct with me"
    rf"{_PLEASE}(?:treat|(?:talk|speak|write) to|address|explain (?:things|everything) to) me (?:as if|as though|as|like|formally|informally"
    r"|politely|casually|normally|by my|more|less)\b",
    rf"(?:i'd like|i want|i need|i would like|i'd prefer|i would prefer) you to be (?:a (?:bit|little) |much |very |completely |always )?(?:more |less |as )?{MANNERS}\b",
    rf"{_PLEASE}be (?:a (?:bit|little) |much |very |completely )?(?:more |less )?{MANNERS}(?: with me| to me| in your|,? even if| when you\b)",
    rf"{_PLEASE}be (?:a (?:bit|little) |much )?(?:more|less) {MANNERS}{_END}",
    rf"(?:a (?:bit|little) |much )?(?:more|less) {MANNERS},? please\b",
    rf"{_PLEASE}use (?:only )?my (?:first|full|last|nick|sur|middle)[ -]?name{_END}",
    # work: "one question at a time", "cite your sources", "if you're not sure, say so"
    rf"{_PLEASE}(?:ask (?:me )?)?(?:(?:your |the |me )?questions?|one question|one thing|just one question),? (?:one )?(?:at a time|by one|one at a time|one by one)\b",
    rf"{_PLEASE}explain (?:things|everything|stuff) step by step\b",
    rf"{_PLEASE}(?:cite|name|give|state|show|include|mention|add|link(?: to)?)(?: me)? (?:your|the|a) sources?(?: for (?:facts|claims|figures|everything)\b.*)?{_END}",
    r"(?:if|when|whenever) (?:you(?:'re| are) (?:not |un)(?:sure|certain)|you (?:don't|do not) know|in doubt)[^,:]{0,40},? (?:then )?"
    r"(?:please |just |always )*(?:say|tell|ask|admit|don't|do not|never|check|leave|let me)\b",
)
PREFERENCES = (
    rf"(?:i'd|i would) (?:much )?(?:rather|prefer it if|prefer that|like it if|love it if|appreciate it if) you {_AGREED}\b",
    r"(?:i'd|i would) (?:like|love|appreciate) (?:it if )?you (?:always|never|generally)\b",
    r"(?:i'd|i would) (?:really )?(?:like|love|appreciate|be glad|be grateful)(?: it)? if you .*\b(?:every time|each time|in general|always|never)\b",
    r"it (?:would|'d) (?:be|really be) (?:nice|great|good|helpful|better|best|lovely|useful) if you (?:could )?(?:always|never|generally)\b",
    rf"i (?:want|would like|expect|need) (?:every|each|all)(?: of)?(?: your| my)? (?:answer|reply|response|explanation|summary|{REPLIES})\b",
    rf"i (?:(?:don't|do not) )?(?:want|need|like|expect|prefer|hate) (?:any |your |my )?(?:{_PLAIN} )?(?:{REPLIES}|{STYLES}){_END}",
    rf"i (?:(?:really|usually|always|generally) )?(?:use|think in|work in|read|count in|understand) (?:only )?(?:the )?{UNITS}{_END}",
)

# What a statement on the form of every answer is about, and the beginning of one on a kind of request.
_ON_ANSWERS = re.compile(
    rf"\b(?:answer(?:s|ing)?|repl(?:y|ies|ying)|respon(?:d|ses?|ding)|sentences|explanations|{STYLES}|{UNITS}|british|american|spelling|tone|sources?"
    rf"|(?:in|speak|write|use) {LANGUAGES}|call me|(?:address|refer to|treat|talk to|speak to|write to) me|pronouns|my (?:first |full |last )?name"
    rf"|(?:be|more|less|keep it|keep things) {MANNERS}|(?:lower|upper) ?case|step by step|at a time|not (?:sure|certain)|unsure|apologi[sz]\w*)\b",
    re.IGNORECASE,
)
_ON_KIND = re.compile(
    r"\b(?:when(?:ever)?|if|(?:every|each|any) time) (?:i|you|we) (?!are\b|'?re\b|don't\b|do not\b|answer|repl|respond|talk|speak|write to)|\bfor (?!me\b|all\b|every)"
    r"|\bin (?:all )?(?:my|your|our) (?:mails?|emails?|letters?|code|commit\w*|recipes?|reports?)\b",
    re.IGNORECASE,
)


def concerns_every_answer(text: str) -> bool:
    """Return whether an instruction or preference is on the form of every answer and not on a kind of request.

    >>> texts = ("Always answer in French", "Never suggest meat", "When I ask for code, answer with tests")
    >>> [concerns_every_answer(text) for text in texts]
    [True, False, False]
    """
    return _ON_ANSWERS.search(text) is not None and _ON_KIND.search(text) is None
