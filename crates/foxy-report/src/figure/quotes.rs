//! The values that figures quote from the papers, with the words of the papers. The table
//! `quotes.tsv` contains them. `cargo xtask quotes FOLDER` searches the papers in `FOLDER` for
//! these words, and then writes a checksum, the seal, into the table. If somebody changes the table
//! later, a test fails because of the seal.

use super::number_words::{Expression, numbers_in};
use crate::chart::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// The table of quotes. Each line is a quote, with tabs between the columns.
pub const TABLE: &str = include_str!("quotes.tsv");

/// How a quoted value was obtained from the words of the paper.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum QuoteKind {
    /// The quoted words contain the number.
    Stated,
    /// The value is computed from numbers in the quoted words.
    Derived,
    /// The quoted words give only a direction, such as "faster". A number in the table is foxy's
    /// interpretation.
    Words,
    /// The scan of the paper that `cargo xtask quotes` reads lacks the number. Another edition of
    /// the paper states the number.
    Edition,
}

impl QuoteKind {
    const ALL: [Self; 4] = [Self::Stated, Self::Derived, Self::Words, Self::Edition];
}

impl fmt::Display for QuoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stated => "stated",
            Self::Derived => "derived",
            Self::Words => "words",
            Self::Edition => "edition",
        })
    }
}

/// A line of the table of quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// Figure of the row, such as `001-table2`.
    pub figure: String,
    /// Name of the row. A name that ends with `*` fits all names that begin like it.
    pub row: String,
    /// The quoted value or range. `None` if the words give only a direction.
    pub value: Option<RangeInclusive<f64>>,
    /// If the values of all runs lie in this range, they reproduce the quoted value.
    pub band: Option<RangeInclusive<f64>>,
    /// How the value was obtained from the paper's words.
    pub kind: QuoteKind,
    /// Number of the paper, such as `001`.
    pub document: String,
    /// Number of the line or word in the paper where the quoted words begin.
    pub place: String,
    /// The quoted words of the paper. If they come from several places of the paper, they have
    /// several parts.
    pub words: Vec<String>,
    value_text: String,
}

impl Quote {
    /// Returns the quoted value, or the middle of the quoted range.
    pub fn middle(&self) -> Option<f64> {
        self.value.as_ref().map(|range| f64::midpoint(*range.start(), *range.end()))
    }

    fn fits(&self, figure: &str, row: &str) -> bool {
        let named = match self.row.strip_suffix('*') {
            Some(start) => row.starts_with(start),
            None => self.row == row,
        };
        self.figure == figure && named
    }

    /// Returns the columns that the seal (a checksum in the table of quotes) protects, as text.
    fn sealed(&self) -> String {
        let band = self.band.as_ref().map(|band| format!("{}..{}", band.start(), band.end()));
        [
            &self.figure,
            &self.row,
            &self.value_text,
            &band.unwrap_or_default(),
            &self.kind.to_string(),
            &self.document,
            &self.place,
            &self.words.join(" … "),
        ]
        .map(String::as_str)
        .join("\t")
    }

    /// Returns the numbers of the value's formula that do not occur in the quoted words. The result
    /// of a correct line is empty.
    fn lacking(&self) -> Vec<String> {
        if matches!(self.kind, QuoteKind::Words) {
            return Vec::new();
        }
        let there = numbers_in(&self.words.join(" "));
        let parts = self.value_text.split("..").filter_map(Expression::parse);
        let operands =
            parts.flat_map(|part| part.operands().map(str::to_owned).collect::<Vec<_>>());
        // The factors 100 and 1000 only turn shares into percent, and seconds into milliseconds.
        let is_unit = |operand: &String| ["100", "1000"].contains(&operand.as_str());
        operands.filter(|operand| !is_unit(operand) && !there.holds(operand)).collect()
    }
}

static QUOTES: LazyLock<Vec<Quote>> =
    LazyLock::new(|| parse(TABLE).expect("a test reads the table"));

/// Returns the line of the table of quotes that belongs to a row of a figure.
pub fn quote(figure: &str, row: &str) -> Option<&'static Quote> {
    QUOTES.iter().find(|quote| quote.fits(figure, row))
}

/// Returns the value that the paper gives for a row, for a chart.
pub fn in_chart(figure: &str, row: &str) -> Option<Value> {
    let quote = quote(figure, row)?;
    let range = quote.value.as_ref()?;
    Some(Value::between(quote.middle()?, *range.start(), *range.end()))
}

/// The beginning of the table lines that contain the seal and the papers' checksums.
const SEAL: &str = "# seal";

/// Parses a table of quotes. The error gives the number of the first wrong line.
pub fn parse(text: &str) -> Result<Vec<Quote>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines
        .skip(1)
        .map(|(number, line)| {
            parse_line(line).ok_or_else(|| format!("line {}: not a quote: {line}", number + 1))
        })
        .collect()
}

fn parse_line(line: &str) -> Option<Quote> {
    let columns: Vec<&str> = line.split('\t').collect();
    let &[figure, row, value, band, kind, document, place, words] = columns.as_slice() else {
        return None;
    };
    let range = |text: &str| -> Option<RangeInclusive<f64>> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        Some(Expression::parse(low)?.value()..=Expression::parse(high)?.value())
    };
    let (found, kind) = (range(value), QuoteKind::ALL.into_iter().find(|k| k.to_string() == kind)?);
    let is_range = value.contains("..");
    let band = match (range(band), &found) {
        (Some(band), _) => Some(band),
        (None, Some(found)) if is_range => Some(found.clone()),
        (None, Some(found)) => Some(super::within(*found.start())),
        (None, None) => None,
    };
    let complete = value.is_empty() == found.is_none() && !words.is_empty();
    complete.then(|| Quote {
        figure: figure.into(),
        row: row.into(),
        value: found,
        band,
        kind,
        document: document.into(),
        place: place.into(),
        words: words.split(" … ").map(Into::into).collect(),
        value_text: value.into(),
    })
}

/// Returns the FNV-1a checksum of a text.
pub fn checksum(text: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

fn seal(quotes: &[Quote], documents: &[String]) -> String {
    let lines: Vec<String> = quotes.iter().map(Quote::sealed).collect();
    checksum(&format!("{}\n{}", lines.join("\n"), documents.join("\n")))
}

/// Returns the number of quotes. Fails if somebody changed a line after the last comparison with
/// the papers, or if the quoted words lack a number of the value.
pub fn check(table: &str) -> Result<usize, String> {
    let quotes = parse(table)?;
    let seals: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix(SEAL)).collect();
    let (documents, [own]) = seals.split_at(seals.len().saturating_sub(1)) else {
        return Err("the table has no checksum (`# seal`); run `cargo xtask quotes FOLDER`".into());
    };
    let documents: Vec<String> = documents.iter().map(|line| line.trim().to_owned()).collect();
    if own.trim() != seal(&quotes, &documents) {
        return Err(
            "the table does not match its checksum (`# seal`), so somebody changed it; run \
                    `cargo xtask quotes FOLDER`"
                .into(),
        );
    }
    let lacking: Vec<String> = quotes.iter().filter_map(lacks).collect();
    if lacking.is_empty() { Ok(quotes.len()) } else { Err(lacking.join("\n")) }
}

fn lacks(quote: &Quote) -> Option<String> {
    let lacking = quote.lacking();
    let Quote { figure, row, .. } = quote;
    (!lacking.is_empty()).then(|| format!("{figure}, {row}: the words lack {}", lacking.join(", ")))
}

/// Looks for the words of each quote in the papers. The keys of `papers` are the papers' numbers.
/// Returns the table of quotes with the places of the words, and with a new seal (checksum).
pub fn compare(table: &str, papers: &BTreeMap<String, String>) -> Result<String, String> {
    let (mut quotes, mut wrong) = (parse(table)?, Vec::new());
    for quote in &mut quotes {
        let Some(paper) = papers.get(&quote.document) else {
            wrong.push(format!("{}: there is no paper {}", quote.figure, quote.document));
            continue;
        };
        for words in &quote.words {
            if !plain(paper).contains(&plain(words)) {
                wrong.push(format!(
                    "{}, {}: paper {} has no \"{words}\"",
                    quote.figure, quote.row, quote.document
                ));
            }
        }
        quote.place = quote.words.first().map_or_else(String::new, |words| place(paper, words));
        wrong.extend(lacks(quote));
    }
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    let documents: Vec<String> =
        papers.iter().map(|(number, text)| format!("{number} {}", checksum(text))).collect();
    let keeps = |line: &&str| !line.starts_with(SEAL);
    let mut lines: Vec<String> = Vec::new();
    let mut rows = quotes.iter();
    let mut is_head = true;
    for line in table.lines().filter(keeps) {
        if line.starts_with('#') || std::mem::take(&mut is_head) {
            lines.push(line.into());
        } else if let Some(quote) = rows.next() {
            let mut columns: Vec<&str> = line.split('\t').collect();
            columns[6] = &quote.place;
            lines.push(columns.join("\t"));
        }
    }
    let own = seal(&quotes, &documents);
    lines.extend(documents.iter().chain([&own]).map(|sum| format!("{SEAL} {sum}")));
    Ok(lines.join("\n") + "\n")
}

/// Returns a text in which each white space is a single space, so that line breaks do not matter.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the number of the line in which the words begin, or, if the paper's text is a single
/// line, the number of the word.
fn place(paper: &str, words: &str) -> String {
    let start = plain(words);
    if paper.lines().count() < 2 {
        let before = plain(paper).find(&start).unwrap_or(0);
        return format!("word {}", plain(paper)[..before].split(' ').count());
    }
    let lines: Vec<&str> = paper.lines().collect();
    let holds = |from: &usize| plain(&lines[*from..].join(" ")).contains(&start);
    let last = (0..lines.len()).take_while(holds).last().unwrap_or(0);
    format!("line {}", last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "figure\trow\tvalue\tband\tkind\tdocument\tplace\twords\n";

    fn papers() -> BTreeMap<String, String> {
        BTreeMap::from([("001".into(), "squid serves\n27 gets a second\n".into())])
    }

    #[test]
    fn the_table_of_quotes_is_as_it_was_when_it_was_compared_with_the_papers() {
        let count = check(TABLE).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert!(count > 50, "{count}");
    }

    #[test]
    fn a_changed_line_breaks_the_seal() {
        let line = "001-table2\tSQUID\t27\t\tstated\t001\t\tserves 27 gets\n";
        let sealed = compare(&format!("{HEAD}{line}"), &papers()).expect("as in the paper");
        assert!(sealed.contains("\tline 1\tserves 27 gets"), "{sealed}");
        assert_eq!(check(&sealed), Ok(1));
        assert!(check(&sealed.replace("\t27\t", "\t28\t")).is_err());
        assert!(check(&sealed.replace("stated", "derived")).is_err());
    }

    #[test]
    fn words_and_numbers_must_be_in_the_paper() {
        let wrong = |line: &str| {
            compare(&format!("{HEAD}{line}"), &papers()).expect_err("not as in the paper")
        };
        let words = wrong("001-table2\tSQUID\t27\t\tstated\t001\t\tserves 72 gets\n");
        assert!(words.contains("has no \"serves 72 gets\""), "{words}");
        let number = wrong("001-table2\tSQUID\t28\t\tstated\t001\t\tserves 27 gets\n");
        assert!(number.contains("the words lack 28"), "{number}");
        assert!(wrong("001-table2\tSQUID\t27\t\tstated\t004\t\tx\n").contains("no paper 004"));
    }

    #[test]
    fn a_derived_value_needs_all_its_numbers() {
        let line = |value: &str| {
            parse_line(&format!("f\tr\t{value}\t\tderived\t001\t\t133 against 27, or twice"))
                .expect("a quote")
        };
        assert_eq!(line("133 / 27").lacking(), Vec::<String>::new());
        assert_eq!(line("133 / 26").lacking(), ["26"]);
        assert_eq!(line("133 * 2..350").lacking(), ["350"]);
        assert_eq!(line("133 * 2..350").middle(), Some(308.0));
    }

    #[test]
    fn a_star_fits_every_end() {
        let quote = parse_line("f\tcreate*\t20\t\tstated\t001\t\t20").expect("a quote");
        assert!(quote.fits("f", "create, ext2") && !quote.fits("f", "delete, ext2"));
    }
}
