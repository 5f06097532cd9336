"""Patterns of wishes on the habits of the agent, without "always" or "from now on". Pure.

An order without a reference to one thing ("the", "this", a name, a time) is meant for every case: "ask before you book
anything". The patterns match at the beginning of a sentence.
"""

from newton.heart.identity.answer_wishes import LANGUAGES, MANNERS, REPLIES, STYLES

# What makes an order one for a single case: a definite object, a name, a time, a number of things.
ONE_CASE = (
    r"(?!.*\b(?:the|this|that(?! (?:i|you|is|are)\b)|these|those|it|him|her|them|his|their|its|yet|now|then|still|soon|later|already"
    r"|another|again|at once|tonight|(?:mon|tues|wednes|thurs|fri|satur|sun)day(?! (?:morning|afternoon|evening)s?))\b)"
    r"(?!.*(?<!^)\s(?-i:[A-Z])(?-i:[a-z]+)\b(?<!\bGerman)(?<!\bEnglish)(?<!\bFrench)(?<!\bWelsh)(?<!\bLatin)(?<!\bAmerican)(?<!\bBritish))"
)
_PLEASE = r"(?:(?:can|could|would|will) you )?(?:(?:please|kindly|just|also|i want you to|i'd like you to|you should),? )*"
_NOT = r"(?:do not|don't)(?: ever| you)?"
_AGENT = (  # what only an agent or an assistant does, not a person in a house
    r"(?:answer|apologi[sz]e|assume|book|cite|compare|correct|delete|describe|explain|give me|guess|include|invent|judge|make up|mark"
    r"|mention|order|offer|pretend|propose|quote|recommend|refer to|remind me|repeat|reply|respond|round|schedule|send|share|show me"
    r"|spell|spend|start with|end with|begin with|suggest|summari[sz]e|tell me|translate|treat|write)"
)
_WORK = rf"(?:{_AGENT}|add|ask|avoid|call|change|check|confirm|convert|give|highlight|leave out|list|make|name|note|say|show|tell|use|warn)"
_GENERIC = r"(?:any\w*|every\w*|all|more than \w+|less than \w+|fewer than \w+|only|me|my|people|[\w-]+(?:[^s\W]s|ies))\b"
_YOU_DO = (
    r"(?:answer|book|buy|change|cite|code|commit|compare|delete|design|draw|edit|explain|give|guess|list|make|mention|name|offer|order|pay|plan"
    r"|propose|quote|recommend|refer|remove|reply|respond|schedule|send|share|show|spend|suggest|summari[sz]e|talk|tell|translate|use|write)"
)

ORDERS = (
    # prohibitions on no single case: "don't schedule anything before ten", "don't call me sir"
    rf"{ONE_CASE}{_PLEASE}{_NOT} {_AGENT}\b(?: (?:as|with|to|me|by|for|from))*(?: \w+)? {_GENERIC}",
    rf"{ONE_CASE}{_PLEASE}{_NOT} {_AGENT} {_GENERIC}",
    rf"{ONE_CASE}{_PLEASE}(?:{_NOT} (?:call|assume|think|treat|consider)|stop calling|stop treating) (?:that )?(?:me|i'm|i am)\b",
    rf"{ONE_CASE}{_PLEASE}{_NOT} \w+ (?:me|my|anything|any|bad|good|\w+s)\b.*\b(?:without (?:asking|telling|checking|my)|from me\W*$)",
    rf"{_PLEASE}{_NOT} (?:start|end|begin|finish|close|open) with an? \w+\W*$",
    rf"{_PLEASE}{_NOT} (?:sugar-?coat|use up|dumb down|water down) (?:things|it|anything|stuff)\b",
    rf"{_PLEASE}(?:stop|quit) (?:asking|telling|reminding|calling|correcting|interrupting|praising|thanking|warning|suggesting|recommending)"
    r" (?:me|whether|if|my|for|that i|things|stuff)\b",
    # orders for every case: "ask before you book anything", "mention the price when you suggest a dish"
    rf"{ONE_CASE}{_PLEASE}(?:ask|check|confirm|warn|tell|consult|wait|stop|think)(?: with)?(?: me)?(?: first| twice)?,? before "
    rf"(?:you |\w+ing )(?:[\w-]+ )?(?:\w+ )?(?:any\w*|{_GENERIC})",
    rf"{_PLEASE}{_WORK}\b[^,.:;]{{1,60}},? (?:the first time|when|whenever|if|before) (?:you|i) (?:are |don't |do not )?(?:{_YOU_DO}|make mistakes|wrong)\b"
    r"(?! (?:the|this|that|these|those|it|to)\b)",
    rf"{_PLEASE}(?:keep (?:it|things) (?:{MANNERS}|simple|light)|be {MANNERS}),? when (?:you|we)\b",
    rf"(?:when|if|whenever) you {_YOU_DO} (?!the\b|this\b|that\b|it\b)[^,:]{{2,60}}, {_PLEASE}(?:{_NOT} )?(?:{_WORK}|pick|choose|take|prefer|make sure|include)\b",
    rf"(?:when|if|whenever) (?:an?|any|some)(?:thing|one| [\w-]+) (?!is ready|arrives|calls|comes)[^,:]{{2,60}}, {_PLEASE}(?:{_NOT} )?(?:{_WORK}|pick|choose)\b",
    rf"{_PLEASE}(?:tell|warn|let)(?: me)?(?: know)? (?:when|whenever|if) you(?:'re| are)? (?:guess|guessing|don't know|do not know|not sure|unsure|assume|speculate|make)",
    rf"{_PLEASE}(?:just )?(?:say|admit)\b[^,.:]{{0,30}} (?:if|when) you (?:don't|do not|aren't|are not)\b",
    rf"{_PLEASE}remember (?:that )?(?:i'm|i am|i) .{{2,60}} (?:when|whenever|if) you\b",
    # "only tell me things you can back up", "just the facts, please"
    rf"{_PLEASE}only (?:tell|give|show|send|recommend|suggest|quote)(?: me)? (?:things|facts|[\w-]+s)\b",
    r"(?:just|only) the (?:facts|essentials|answer|basics|main points|bare facts|short version)(?:,? (?:please|only|never|no|not)\b.*)?\W*$",
    rf"(?:{REPLIES}|responses|recipes) (?:only )?(?:in|with|without|under|of|for) (?!the\b|this\b)[^,.]{{2,40}},? (?:please|only|thanks)\W*$",
    rf"(?:all )?(?:of )?(?:your|my) (?:{REPLIES}|recipes|translations|e?-?mails|letters|code|meals|plans) (?:should|must|need to|have to|are to|shall)\b",
    rf"(?:the )?[\w-]+ first,? (?:and )?(?:then )?(?:the )?(?:{REPLIES}|explanations?|details|rest|reasons?) (?:after|later|second|last)\w*\W*$",
    r"no [\w -]{2,30}, ever\W*$",
    rf"{_PLEASE}use (?:[\w-]+ )?(?:inclusive|gender-neutral|formal|informal|neutral|polite|simple) (?:language|wording|pronouns)\b",
    rf"{_PLEASE}use (?:the )?(?:metric|imperial|decimal) system\W*$",
    rf"{_PLEASE}(?:{_NOT} use|use|spell|write) my (?:sur|last |first |full |middle |nick)?name(?: with .{{1,20}}| only)?\W*$",
    rf"{_PLEASE}use (?:first|last) names\b",
    rf"{_PLEASE}keep (?:paragraphs|messages|texts|lines|our (?:chats|conversations|talks)|lists)\b",
    rf"{_PLEASE}(?:write|spell|give|show) (?:numbers|dates|amounts|names|times|years|prices) (?:as|in|with|out)\b(?! the)",
    rf"{_PLEASE}(?:convert) [\w-]+ to [\w-]+ in [\w-]+s\W*$",
    r"(?:please )?(?:talk|apologise|apologize|explain|write|chat) less\W*$",
    rf"(?:please )?(?:drop|skip|cut|forget|spare me) the (?:formalit(?:y|ies)|pleasantries|politeness|chit-?chat|{STYLES})\b",
    rf"you (?:can|may|should) (?:always |just )?(?:drop|skip|forget|be {MANNERS}|be rude|swear|joke|leave out)\b(?!.*\b(?:today|this|chapter|lesson|class|meeting)\b)",
    r"(?:you (?:don't|do not) (?:have|need) to|you needn't|(?:there's )?no need to) (?:be (?:so )?(?:polite|formal|nice|careful with me)|thank me|apologi[sz]e"
    r"|ask (?:me )?(?:if|whether)|explain|repeat|greet me|say)\b",
    rf"(?:can|could|shall|let's|may) we (?:please )?(?:speak|talk|chat|write|use|stick|switch|keep)\b.*\b(?:from (?:now|here) on|{LANGUAGES} (?:please|only)|in general|always)\b",
    r"(?:do me a favou?r|be so kind|be a dear)(?: and|,) (?:always|never|don't|stop)\b",
    r"i (?:want|expect|need|would like|'d like) you to (?:challenge|correct|contradict|push|remember what|remind me when|tell me when|be)\b",
)
PREFERENCES = (
    rf"(?:i'd|i would) prefer (?:it )?(?:if |that )?you (?:didn't|did not|don't|never|always|wouldn't)\b",
    rf"i (?:like|love|hate|enjoy|dislike|prefer) [^,.]{{2,50}} in (?:your )?{REPLIES}\b",
    r"i (?:like|want|prefer|appreciate|value|hate) (?:direct|honest|blunt|gentle|constructive|quick|critical|harsh) (?:feedback|criticism|language|words)\b",
    r"i (?:(?:don't|do not) (?:like|want)|hate) (?:being|to be) (?:called|addressed|patroni[sz]ed|lectured|interrupted|rushed|flattered|praised)\b",
    rf"i (?:don't|do not) do {STYLES}\b",
    rf"(?:i'd|i would) like (?:all|my|your) [\w-]+s (?:in|as|with)\b",
    rf"i only (?:read|speak|understand|write) {LANGUAGES}\b",
    r"my name is .{2,40},? but (?:everyone|everybody|people|my friends|they all|all) calls? me\b",
)
