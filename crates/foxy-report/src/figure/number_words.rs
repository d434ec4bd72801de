//! Finds numbers in the words that figures quote from papers, and computes formulas of such
//! numbers.

use std::collections::BTreeSet;

/// A formula such as `1885 / 8400 * 17`. It is computed strictly from left to right: `*` does not
/// take precedence over `+`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression<'a> {
    first: &'a str,
    steps: Vec<(char, &'a str)>,
}

impl<'a> Expression<'a> {
    /// Reads a formula with spaces around each operator.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let is_number = |word: &&str| word.parse::<f64>().is_ok();
        let first = words.next().filter(is_number)?;
        let mut steps = Vec::new();
        while let Some(operator) = words.next() {
            let operator = operator.chars().next().filter(|sign| "+-*/".contains(*sign))?;
            steps.push((operator, words.next().filter(is_number)?));
        }
        Some(Self { first, steps })
    }

    /// Returns the numbers of the formula.
    pub fn operands(&self) -> impl Iterator<Item = &'a str> {
        [self.first].into_iter().chain(self.steps.iter().map(|step| step.1))
    }

    /// Works out the formula.
    pub fn value(&self) -> f64 {
        let number = |text: &str| text.parse().unwrap_or(f64::NAN);
        self.steps.iter().fold(number(self.first), |left, &(operator, right)| match operator {
            '+' => left + number(right),
            '-' => left - number(right),
            '*' => left * number(right),
            _ => left / number(right),
        })
    }
}

/// The numbers that occur in a text. Each number is kept as its digits, without decimal point and
/// commas, because the scanned text of the WebCoSM paper has lost its decimal points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(BTreeSet<String>);

impl Numbers {
    /// Returns whether the text contains `number`. Compares digits only, without decimal point and
    /// commas.
    pub fn holds(&self, number: &str) -> bool {
        self.0.contains(&digits(number))
    }
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

const WORDS: [(&str, &str); 7] = [
    ("one", "1"),
    ("two", "2"),
    ("twice", "2"),
    ("three", "3"),
    ("six", "6"),
    ("ten", "10"),
    ("forty", "40"),
];

/// Returns the numbers that a text has as digits or words. In the scanned papers the digit 1
/// sometimes became the letter `l`, so an `l` before a digit counts as 1.
pub fn numbers_in(text: &str) -> Numbers {
    let mut found = BTreeSet::new();
    for word in text.split_whitespace() {
        let read = match word.strip_prefix('l') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("1{rest}"),
            _ => word.to_lowercase(),
        };
        let parts = read.split(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
        found.extend(parts.map(digits).filter(|digits| !digits.is_empty()));
        let plain = read.trim_matches(|c: char| !c.is_alphanumeric());
        found.extend(WORDS.iter().filter(|(word, _)| *word == plain).map(|(_, d)| (*d).to_owned()));
    }
    Numbers(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_worked_out_from_left_to_right() {
        let value = |text| Expression::parse(text).map(|formula| formula.value());
        assert_eq!(value("100 + 10 * 350 / 100"), Some(385.0));
        assert_eq!(value("4.7"), Some(4.7));
        for wrong in ["", "a", "4 5", "4 /", "/ 4", "4 ^ 5"] {
            assert_eq!(value(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_are_found_without_points_and_in_words() {
        let found = numbers_in("aufs | 110.0 | at 47 mbytes, 455ms; l885 reads, forty");
        for number in ["110.0", "4.7", "455", "1885", "40"] {
            assert!(found.holds(number), "{number}");
        }
        assert!(!found.holds("11") && !found.holds("885"));
    }
}
