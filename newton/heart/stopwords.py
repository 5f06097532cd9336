"""Word lists for name recognition, such as words that are never or rarely names. Pure."""


def split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Never a name, with or without a capital.
NEVER_NAMES = split_words("""
a about above after again against ah aha ain alas all almost already alright also although always am an and another any
anybody anymore anyone anything anytime anyway anyways apr april are aren as asap assistant at aug august aw awesome aww
because been before behind being below besides between both btw bummer but by bye can cannot cheers congrats
congratulations could couldn dec december definitely did didn do does doesn doing don done down during each eh either
else especially eta etc even eventually ever every everybody everyone everything exactly except faq feb february few
finally for fri friday fridays from fyi gonna goodbye gotcha gotta ha had haha hahaha has have haven having he hello
hence her here hers herself hey hi him himself his hm hmm hooray how however huh i if in indeed instead into is isn it
its itself jan january jul july jun june just kinda kudos lately later lemme less let lmao lol many mar march may maybe
me mhm mine mm mmm mon monday mondays more most mostly much must my myself nah nb neither never nevertheless no nobody
none nope nor not nothing nov november now oct october of off oh ok okay omg on once one ones only onto oof ooh oops or
other otherwise ouch our ours ourselves out over own per perhaps phew please plus pm probably ps quite rather really
recently same sat saturday saturdays sep sept september seriously several shall she should since so some somebody
somehow someone something sometimes somewhere soon sorry still such sun sunday sundays system tbd than thank thanks that
the their theirs them themselves then there therefore these they this those though through thu thur thurs thursday
thursdays thus thx till to today todo together tomorrow tonight too tool toward towards tue tues tuesday tuesdays tv two
type u ugh uh um under unfortunately unless unlike until up upon us user very via wait wanna was wasn we wed wednesday
wednesdays welcome well went were weren what whatever when whenever where whereas wherever whether which whichever while
who whoa whoever whole whom whose why with within without woah wont woo woohoo would wouldn wow wtf y ya yay yea yeah
year yep yes yesterday yet yo you your yours yourself yum yup
""")
# Often the first word of a sentence. Elsewhere they may be part of a name: Will, New York.
SENTENCE_STARTERS = split_words("""
absolutely according actual actually add agreed amazing appreciate ask ate back beautiful believe best better big bought
bring brought busy call called came care change check chose come coming cool count couple course crazy create created
cute dear decided depends different dinner dude easy enjoy enjoyed ensure excellent excited exciting experience fair
fantastic far feel feels felt figured find fine first fix follow food found free friends fun funny generally get gets
give glad go goes good got grab great guess guys half hang happy hard hear heard help hold home honestly hope hoped
hopefully hug hugs image imagine important incredible initially interesting join keep kept kids kind knew know last
learn learned left life like likely list listen little live long look looked looks lots love loved lovely luckily lucky
made make makes meet mention met mixed moved music name need needed new next nice normally note obviously often old open
overall part people perfect photo pick picked picture plan plans played possibly pretty pros proud put quick quickly
read ready remember respect right run sad said saw say says second see seem seems seen send sent set share shared show
similarly simply sleep slowly small sound sounds special spend spent start started stay stop strong stuff suddenly super
support sure take talk tell terrible thing things think third thought three throw time times told took totally tough
tried true truly trust try turn turned use used usually visit visited walk want wanted warm watch watched way week will
wish wonderful work worked works worry worst worth write writing wrote
""")
COMMON_WORDS = NEVER_NAMES | SENTENCE_STARTERS
# Ordinary words that are also names of products and people.
AMBIGUOUS_NAMES = COMMON_WORDS | split_words("""
access air amber angel apple arrow art ash autumn bank base bear bill bolt book books boot box bridge brook buddy cash
chance chase chip clay cliff cloud coach cookie copper coral daisy dash dawn dean digit dot dove drew drive dusty echo
edge element excel express faith figure fish flash flask forest forge fox frank gap gem gene ginger glass glide grace
grant grid harbor harmony hawk hazel honey hood house hunter ivy jack jade jet joy judge kit lake lance light lily line
linear lock loop mail mall maps mark mason melody mercy mint monarch moss nature node notes notion oak office olive
oracle orange outlook pages pat patience pay pearl penny poppy prime prince prism python queen rail rain ray react red
reed rich ridge ring river rob robin rocket rocky rose royal ruby rust rusty sage sandy scout shadow shell shield signal
silver skip sky slack snap snow soul spark spike spot spring square star steam stone storm stream stripe summer sun
swift table tandem target teams temple tide tiger toast tune unity valve vault victory violet visa vision wade wave web
whisper willow wind windows winter wise wolf word zoom
""")
TITLES = split_words("dr mr mrs ms prof st sir jr sr mt")
# Shared by many names, so none of them identifies an entity alone.
SHARED_NAME_PARTS = (
    (COMMON_WORDS - split_words("will hope"))
    | TITLES
    | split_words("""
cape city east el fort la lake las los mount north port saint san santa south united west
""")
)
