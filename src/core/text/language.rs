//! Detection of the language of a text, from its script and its function words.
//!
//! The avoid list compares languages: a translation never replaces its original, however much code,
//! markup and boilerplate both share. So detection must be cheap and seldom wrong, and "unknown" is
//! an acceptable result: an unknown language differs from no other.
//!
//! Only a sample of the text is read (three short windows). If most of its letters are of one
//! script other than Latin, the script determines the language or restricts the choice. Otherwise
//! each word that is a function word of a language counts for that language. The language with the
//! most such words is returned if it has a clear margin ([`LanguageDetector::detect`]).

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use webtwin_base::by_hash::HashKeyMap;

/// Languages and scripts, with the function words by which each language is recognised. The index
/// in this table is the number of a [`Language`], so rows may only be appended.
///
/// Words are in lower case. Languages without words are recognised by their script alone.
const LANGUAGES: [(&str, &str); 41] = [
    ("", ""),
    ("und-Cyrl", ""),
    ("und-Arab", ""),
    ("und-Deva", ""),
    ("ar", "في من على إلى أن عن هذا هذه التي الذي مع لا أو كان ما كل بين بعد لم قد"),
    ("bg", "и на да се за от е са като не със ще това или при към може по който която които"),
    ("ca", "el la els les de del amb per que i un una és en als aquest aquesta això són però més també com ha"),
    ("cs", "a se na je že v s z do pro jsou jako nebo ale by k které který bylo být tento podle jeho aby když"),
    ("da", "og i at er en den til på de med for af det som ikke der var et kan eller fra om har ved blev også"),
    (
        "de",
        "der die und das ist nicht ein eine zu mit den von für auf dem im sich auch werden wird oder als bei sind des",
    ),
    ("el", "και το της να του η για με ο των από στο τα είναι που οι στη τον την σε δεν ή"),
    ("en", "the of and to in is that for it as with be are this on by or not from at an can which you have was if"),
    ("es", "de la que el en los se las del un por con una para es su al como más o pero sus este está son si"),
    ("et", "ja on ei et see kui ka mis oma ning selle või aga seda oli kes siis mida need välja"),
    ("fa", "و در به از که این را با است برای آن یک می شود های تا بر کرد شده خود یا"),
    ("fi", "ja on ei se että oli hän joka mutta kun tai niin myös ovat kuin sen voi jos olla mukaan ole tämä"),
    ("fr", "de la le et les des est un une du en que pour dans qui par sur au avec ce ou pas sont plus il cette aux"),
    ("he", ""),
    ("hi", "के में की है और का को से पर यह कि हैं एक लिए नहीं भी था इस या कर"),
    ("hr", "i je u se na da su za od s ili koji kao koja može nije biti što ako bi te iz"),
    ("hu", "a az és hogy nem is egy van ez vagy csak de meg ha mint ezt kell azt lehet által amely minden"),
    ("id", "yang dan di untuk dengan ini dari dalam tidak pada adalah itu atau ke akan dapat oleh anda juga sebagai"),
    ("it", "di il la che e per un in è non del una con della si le da dei sono come al più questo anche nel o gli"),
    ("ja", ""),
    ("ko", ""),
    ("lt", "ir yra į kad su iš ar bet kaip tai buvo tik per už jei arba nuo kuris gali būti"),
    ("lv", "un ir no ar par uz kas ka tas vai kā pēc bet tiek lai šī šis tika var būt"),
    ("nl", "de het een van en in is dat op te voor met zijn niet aan er om ook als dan bij door naar worden wordt of"),
    ("no", "og i det er på til som en av for at ikke med den har de kan et eller om fra var også blir ble være seg"),
    ("pl", "i w na z do nie się jest że to o jak dla po przez lub są od które jako oraz może tym tego być"),
    ("pt", "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao ou é são pelo"),
    ("ro", "de și în la cu pe a care o nu este pentru din se un mai sau sunt să ca fi prin această"),
    ("ru", "и в не на что с как по это для из или от при если его может к также но был быть она они"),
    ("sk", "a sa na je že v s z do pre sú ako alebo ale by k ktoré ktorý bolo byť tento podľa jeho aby keď"),
    ("sl", "in je na se za da so v ki z pri ali kot tudi lahko ne po biti če iz kar ter še"),
    ("sv", "och att i det som en på är av för med till den har de inte om ett eller kan från var så vid du"),
    ("th", ""),
    ("tr", "ve bir bu için ile da de olarak olan gibi daha en çok değil veya her ne kadar sonra ancak ise"),
    ("uk", "і в на не що з до та для як від це або за при його але може є також який якщо про"),
    ("vi", "và của là có được trong cho không một các người với để này những đã khi từ như về"),
    ("zh", ""),
];

/// The language of a page: a code of BCP 47, or unknown.
///
/// # Examples
/// ```
/// use webtwin_core::text::language::Language;
///
/// let [german, french] = ["de", "fr"].map(Language::of_code);
/// assert!(german.differs_from(french));
/// assert!(!german.differs_from(Language::UNKNOWN));
/// assert_eq!(Language::from_number(german.number()).code(), "de");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Language(u8);

impl Language {
    /// An unknown language.
    pub const UNKNOWN: Language = Language(0);

    /// Returns the code in column `pages.language`: ISO 639-1, `und-` and a script if only that is
    /// known, or an empty string.
    pub fn code(self) -> &'static str {
        LANGUAGES[usize::from(self.0)].0
    }

    /// Returns the language with a code that [`code`](Self::code) returns, or unknown for any other
    /// code.
    pub fn of_code(code: &str) -> Language {
        let number = LANGUAGES.iter().position(|language| language.0 == code);
        number.map_or(Language::UNKNOWN, |number| Language(number as u8))
    }

    /// Returns the number that represents this language in rows of fixed width.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Returns the language with a number that [`number`](Self::number) returns, or unknown for any
    /// other number.
    pub fn from_number(number: u8) -> Language {
        if usize::from(number) < LANGUAGES.len() { Language(number) } else { Language::UNKNOWN }
    }

    /// True if both languages are known and no text can be in both.
    pub fn differs_from(self, other: Language) -> bool {
        let script_only = |language: Language| language.code().starts_with("und-");
        let one_script = |some: Language, other: Language| script_only(some) && some.script() == other.script();
        let are_known = self != Language::UNKNOWN && other != Language::UNKNOWN;
        are_known && self != other && !one_script(self, other) && !one_script(other, self)
    }

    fn script(self) -> Script {
        match self.code() {
            "und-Cyrl" | "bg" | "ru" | "uk" => Script::Cyrillic,
            "und-Arab" | "ar" | "fa" => Script::Arabic,
            "und-Deva" | "hi" => Script::Devanagari,
            "el" => Script::Greek,
            "he" => Script::Hebrew,
            "ja" => Script::Kana,
            "ko" => Script::Hangul,
            "th" => Script::Thai,
            "zh" => Script::Han,
            _ => Script::Latin,
        }
    }
}

/// Scripts that are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Hebrew,
    Devanagari,
    Thai,
    Hangul,
    Kana,
    Han,
}

const SCRIPTS: usize = Script::Han as usize + 1;

impl Script {
    /// Returns the script of a letter. A character that is not a letter of another script counts as
    /// Latin.
    fn from_letter(letter: char) -> Script {
        match u32::from(letter) {
            0x0370..=0x03ff | 0x1f00..=0x1fff => Script::Greek,
            0x0400..=0x052f => Script::Cyrillic,
            0x0590..=0x05ff => Script::Hebrew,
            0x0600..=0x077f | 0xfb50..=0xfdff | 0xfe70..=0xfeff => Script::Arabic,
            0x0900..=0x097f => Script::Devanagari,
            0x0e00..=0x0e7f => Script::Thai,
            0x1100..=0x11ff | 0x3130..=0x318f | 0xac00..=0xd7af => Script::Hangul,
            0x3040..=0x30ff => Script::Kana,
            0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff => Script::Han,
            _ => Script::Latin,
        }
    }
}

/// Bytes of each window of a sample; the next constant is the number of windows.
const WINDOW: usize = 256;
const WINDOWS: usize = 3;

/// Returns the windows of a text that are read: three, at a quarter, the middle and three quarters
/// of the text, because texts begin and end with menus. A short text is read as a whole.
fn sample(text: &str) -> impl Iterator<Item = &str> {
    let is_short = text.len() <= WINDOW * WINDOWS;
    let count = if is_short { 1 } else { WINDOWS };
    (1..=count).map(move |number| {
        if is_short {
            return text;
        }
        let boundary =
            |at: usize| (0..=at).rfind(|&at| text.is_char_boundary(at)).expect("a text begins at a boundary");
        let start = boundary(text.len() / (WINDOWS + 1) * number - WINDOW / 2);
        &text[start..boundary(start + WINDOW)]
    })
}

/// Minimum number of words of a sample that determine a language in Latin, Cyrillic, Arabic and
/// Devanagari script.
const MIN_WORDS: u32 = 12;

/// Detector of the languages of texts.
#[derive(Debug)]
pub struct LanguageDetector {
    /// Languages of each function word, by the hash of the word: bit `n` represents number `n`.
    words: HashKeyMap<u64>,
    /// Scratch buffer for the current word in lower case.
    lower: String,
}

impl Default for LanguageDetector {
    fn default() -> LanguageDetector {
        let mut words = HashKeyMap::default();
        for (number, (_, list)) in LANGUAGES.iter().enumerate() {
            list.split(' ')
                .filter(|word| !word.is_empty())
                .for_each(|word| *words.entry(xxh3_64(word.as_bytes())).or_default() |= 1 << number);
        }
        LanguageDetector { words, lower: String::new() }
    }
}

impl LanguageDetector {
    /// Returns the language of `text`, or [`Language::UNKNOWN`] if too few words are function
    /// words, or if two languages have nearly equal numbers of them.
    ///
    /// A language is returned if at least a twelfth of the sample's words are its function words,
    /// and no other language has more than three quarters as many.
    ///
    /// # Cost
    /// About a kilobyte of the text is read, whatever its length.
    ///
    /// # Examples
    /// ```
    /// use webtwin_core::text::language::LanguageDetector;
    ///
    /// let mut detector = LanguageDetector::default();
    /// let french = "La directive est valable dans le contexte d'un serveur, et pour les hôtes qui en sont issus.";
    /// assert_eq!(detector.detect(french).code(), "fr");
    /// ```
    pub fn detect(&mut self, text: &str) -> Language {
        let mut letters = [0u32; SCRIPTS];
        let mut hits = [0u32; LANGUAGES.len()];
        let mut count = 0;
        for window in sample(text) {
            for word in window.split(|letter: char| !(letter.is_alphabetic() || is_mark(letter))) {
                let Some(first) = word.chars().next() else { continue };
                if word.is_ascii() {
                    letters[Script::Latin as usize] += word.len() as u32;
                } else {
                    word.chars().for_each(|letter| letters[Script::from_letter(letter) as usize] += 1);
                }
                // Words longer than any in the table need no look-up.
                count += 1;
                if word.len() > LONGEST_WORD && Script::from_letter(first) == Script::Latin {
                    continue;
                }
                self.lower.clear();
                if word.is_ascii() {
                    self.lower.push_str(word);
                    self.lower.make_ascii_lowercase();
                } else {
                    self.lower.extend(word.chars().flat_map(char::to_lowercase));
                }
                let mut languages = self.words.get(&xxh3_64(self.lower.as_bytes())).copied().unwrap_or(0);
                while languages != 0 {
                    hits[languages.trailing_zeros() as usize] += 1;
                    languages &= languages - 1;
                }
            }
        }
        let letter_count: u32 = letters.iter().sum();
        // Kana and Han are counted together, because a Japanese text has both.
        let [kana, han] = [Script::Kana, Script::Han].map(|script| letters[script as usize]);
        if (kana + han) * 2 > letter_count {
            return if kana * 20 >= kana + han { language_of_code("ja") } else { language_of_code("zh") };
        }
        let script = (0..SCRIPTS).max_by_key(|&script| letters[script]).expect("there are scripts");
        if letters[script] * 2 <= letter_count {
            return Language::UNKNOWN;
        }
        let by_words = |script: &str| {
            Some(clear_winner(&hits, count)).filter(|it| *it != Language::UNKNOWN).unwrap_or(language_of_code(script))
        };
        match script {
            script if script == Script::Latin as usize => clear_winner(&hits, count),
            script if script == Script::Cyrillic as usize => by_words("und-Cyrl"),
            script if script == Script::Arabic as usize => by_words("und-Arab"),
            script if script == Script::Devanagari as usize => by_words("und-Deva"),
            script if script == Script::Greek as usize => language_of_code("el"),
            script if script == Script::Hebrew as usize => language_of_code("he"),
            script if script == Script::Thai as usize => language_of_code("th"),
            _ => language_of_code("ko"),
        }
    }
}

/// Maximum bytes of a function word in Latin script.
const LONGEST_WORD: usize = 12;

/// True if a character is a vowel sign or a similar mark, which is part of the word around them.
fn is_mark(letter: char) -> bool {
    matches!(u32::from(letter), 0x0300..=0x036f | 0x064b..=0x065f | 0x0900..=0x0903 | 0x093a..=0x094f | 0x0e31..=0x0e4e)
}

/// Returns the language with this code.
fn language_of_code(code: &str) -> Language {
    let number = LANGUAGES.iter().position(|(other, _)| *other == code).expect("the code is in the table");
    Language(number as u8)
}

/// Returns the language with the most function words among `words` words, if it has a clear
/// majority.
fn clear_winner(hits: &[u32; LANGUAGES.len()], words: u32) -> Language {
    let first = (0..hits.len()).max_by_key(|&number| hits[number]).expect("there are languages");
    let second = (0..hits.len()).filter(|&number| number != first).map(|number| hits[number]).max().unwrap_or(0);
    let wins = words >= MIN_WORDS && hits[first] * 12 >= words && hits[first] >= 3 && second * 4 <= hits[first] * 3;
    if wins { Language(first as u8) } else { Language::UNKNOWN }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn languages_of_texts_are_recognised() {
        let mut detector = LanguageDetector::default();
        for (code, text) in [
            (
                "en",
                "This directive controls which of the methods can be used by a client, and it is not set for the server.",
            ),
            (
                "de",
                "Diese Direktive legt fest, welche Methoden ein Client nutzen darf, und sie ist auf dem Server nicht gesetzt.",
            ),
            (
                "fr",
                "Cette directive définit les méthodes que le client peut utiliser, et elle n'est pas activée sur le serveur.",
            ),
            (
                "es",
                "Esta directiva controla los métodos que puede usar un cliente, y no se establece para el servidor en la red.",
            ),
            (
                "pt",
                "Esta diretiva controla os métodos que podem ser usados por um cliente, e não é definida para o servidor da rede.",
            ),
            (
                "it",
                "Questa direttiva controlla i metodi che possono essere usati da un client, e non è attiva per il server della rete.",
            ),
            (
                "nl",
                "Deze richtlijn bepaalt welke methoden door een client gebruikt kunnen worden, en is niet op de server ingesteld van het net.",
            ),
            (
                "sv",
                "Det här direktivet styr vilka metoder som en klient kan använda, och är inte satt på servern i ett nät.",
            ),
            (
                "pl",
                "Ta dyrektywa określa, które metody są dostępne dla klienta, i nie jest ustawiona na serwerze w sieci przez to.",
            ),
            (
                "tr",
                "Bu yönerge bir istemci için hangi yöntemlerin kullanılacağını belirler ve sunucu ile her ağ için daha sonra değil.",
            ),
            (
                "ru",
                "Эта директива определяет, какие методы может использовать клиент, и не задана на сервере для сети или по умолчанию.",
            ),
            (
                "uk",
                "Ця директива визначає, які методи може використовувати клієнт, і не задана на сервері для мережі або за умовчанням.",
            ),
            ("ja", "このディレクティブは、クライアントが使用できるメソッドを制御します。"),
            ("zh", "此指令控制客户端可以使用哪些方法。"),
            ("ko", "이 지시어는 클라이언트가 사용할 수 있는 메서드를 제어합니다."),
            ("el", "Αυτή η οδηγία ελέγχει ποιες μεθόδους μπορεί να χρησιμοποιήσει ένας πελάτης."),
            ("", "index.html 1 2 3 foo bar baz"),
            ("", ""),
        ] {
            assert_eq!(detector.detect(text).code(), code, "{text}");
        }
    }

    #[test]
    fn only_known_languages_of_different_kinds_differ() {
        let [english, french, russian, cyrillic] = ["en", "fr", "ru", "und-Cyrl"].map(language_of_code);
        assert!(english.differs_from(french) && english.differs_from(russian) && cyrillic.differs_from(english));
        assert!(!english.differs_from(english) && !english.differs_from(Language::UNKNOWN));
        assert!(!russian.differs_from(cyrillic) && !cyrillic.differs_from(russian));
    }

    #[test]
    fn numbers_map_to_languages_and_words_fit_the_limits() {
        for number in 0..=u8::MAX {
            let language = Language::from_number(number);
            assert!(language.number() == number || language == Language::UNKNOWN);
        }
        let latin = |word: &&str| word.chars().all(|letter| Script::from_letter(letter) == Script::Latin);
        assert!(
            LANGUAGES
                .iter()
                .flat_map(|(_, words)| words.split(' '))
                .filter(latin)
                .all(|word| word.len() <= LONGEST_WORD)
        );
        assert!(LANGUAGES.len() <= 64);
    }

    proptest! {
        #[test]
        fn any_text_has_a_result(text in any::<String>(), times in 1usize..200) {
            let mut detector = LanguageDetector::default();
            detector.detect(&text.repeat(times));
        }
    }
}
