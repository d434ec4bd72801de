//! A *query* selects transactions by their fields: `status >= 500 and origin.ttfb > 1s`. Fields
//! have types. The error of an invalid query contains the column of the mistake.

mod lex;
mod parse;
mod value;

use crate::transaction::Transaction;
use foxy_base::Cidr;
use regex::Regex;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

type Number = fn(&Transaction<'_>) -> Option<u64>;
type Text = for<'a> fn(&'a Transaction<'_>) -> &'a str;

/// A condition on transactions.
#[derive(Clone, Debug)]
pub enum Query {
    /// All of these conditions hold. An empty list holds for every transaction.
    All(Vec<Self>),
    /// At least one of these conditions holds.
    Any(Vec<Self>),
    /// This condition does not hold.
    Not(Box<Self>),
    /// The comparison of a field with this number holds. `None` stands for an unknown number, which
    /// is equal only to another unknown number, and is neither less nor greater than any number.
    Number(Number, Comparison, Option<u64>),
    /// The comparison of the transaction's end time with this time holds.
    Time(Comparison, u64),
    /// The field is equal to this text.
    Equal(Text, String),
    /// The field is equal to this text, in upper or lower case.
    EqualHost(Text, String),
    /// The regular expression matches a part of the field's text.
    Match(Text, Regex),
    /// The field is an IP address in this block of addresses.
    Within(Text, Cidr),
}

/// An operator that compares two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The comparison `=`.
    Equal,
    /// The comparison `!=`.
    Different,
    /// The comparison `<`.
    Less,
    /// The comparison `<=`.
    AtMost,
    /// The comparison `>`.
    Greater,
    /// The comparison `>=`.
    AtLeast,
}

impl Comparison {
    fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Different => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
        }
    }
}

/// The error of an invalid query, with the position of the mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// The position of the mistake in the query, in characters, from 1.
    pub column: usize,
    /// The kind of mistake.
    pub reason: QueryFault,
}

/// A mistake in a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryFault {
    /// No field has this name.
    UnknownField(String),
    /// A field is not followed by a comparison.
    NoComparison {
        /// Name of the field.
        field: &'static str,
        /// Comparisons that the field permits.
        permitted: &'static str,
    },
    /// A value is not of the field's type.
    BadValue {
        /// The text of the value in the query.
        value: String,
        /// The name of the field's type.
        kind: &'static str,
        /// An example of a value of this type.
        example: &'static str,
    },
    /// A comparison is not followed by a value.
    NoValue,
    /// At the position of the mistake, the query must have a field, `not` or `(`.
    NoCondition,
    /// At the position of the mistake, the query must have `and` or `or`, or end. Contains the
    /// token that was found.
    NoConnective(String),
    /// A parenthesis has no partner.
    Unclosed,
    /// A quotation mark has no partner.
    Unquoted,
    /// At the position of the mistake, this character has no meaning.
    BadCharacter(char),
    /// A value after `~` or `!~` is not a regular expression. Contains the reason.
    BadPattern(String),
    /// The query has too many levels of parentheses.
    TooDeep,
}

impl fmt::Display for QueryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownField(name) => write!(f, "no field is named {name:?}"),
            Self::NoComparison { field, permitted } => {
                write!(f, "after {field}, write one of {permitted}")
            }
            Self::BadValue { value, kind, example } => {
                let article = if kind.starts_with('a') { "an" } else { "a" };
                write!(f, "{value:?} is not {article} {kind}; write a value such as {example}")
            }
            Self::NoValue => f.write_str("a value is missing"),
            Self::NoCondition => f.write_str("write a condition such as status >= 500"),
            Self::NoConnective(found) => {
                write!(f, "write `and` or `or` before {found:?}, or quotes around a longer value")
            }
            Self::Unclosed => f.write_str("this parenthesis has no partner"),
            Self::Unquoted => f.write_str("this quotation mark has no partner"),
            Self::BadCharacter('&' | '|') => f.write_str("write `and` or `or`"),
            Self::BadCharacter(character) => write!(f, "{character:?} has no meaning here"),
            Self::BadPattern(why) => write!(f, "the regular expression is invalid: {why}"),
            Self::TooDeep => f.write_str("the parentheses are nested too deeply"),
        }
    }
}

impl Query {
    /// Reads the text of a query. A relative time such as `-15m` counts from `now`, in milliseconds
    /// since the Unix epoch. An empty text selects every transaction.
    pub fn read(text: &str, now: u64) -> Result<Self, QueryError> {
        parse::parse(text, now)
    }

    /// Returns whether the query selects the transaction.
    pub fn matches(&self, transaction: &Transaction<'_>) -> bool {
        match self {
            Self::All(all) => all.iter().all(|query| query.matches(transaction)),
            Self::Any(any) => any.iter().any(|query| query.matches(transaction)),
            Self::Not(query) => !query.matches(transaction),
            Self::Number(get, comparison, value) => match (get(transaction), *value) {
                (Some(number), Some(value)) => comparison.holds(number, value),
                (number, value) => match comparison {
                    Comparison::Equal => number == value,
                    Comparison::Different => number != value,
                    _ => false,
                },
            },
            Self::Time(comparison, value) => comparison.holds(transaction.end, *value),
            Self::Equal(get, value) => get(transaction) == value,
            Self::EqualHost(get, value) => get(transaction).eq_ignore_ascii_case(value),
            Self::Match(get, regex) => regex.is_match(get(transaction)),
            Self::Within(get, block) => {
                let address = get(transaction).parse::<IpAddr>();
                address.is_ok_and(|address| block.contains(address.to_canonical()))
            }
        }
    }

    /// Returns a range of times that contains the end times of all transactions which the query
    /// selects.
    pub fn times(&self) -> RangeInclusive<u64> {
        let always = 0..=u64::MAX;
        match self {
            Self::All(all) => all
                .iter()
                .map(Self::times)
                .fold(always, |a, b| *a.start().max(b.start())..=*a.end().min(b.end())),
            Self::Any(any) => {
                let both = |a: RangeInclusive<u64>, b: RangeInclusive<u64>| {
                    *a.start().min(b.start())..=*a.end().max(b.end())
                };
                any.iter().map(Self::times).reduce(both).unwrap_or(always)
            }
            Self::Time(Comparison::Equal, time) => *time..=*time,
            Self::Time(Comparison::Less | Comparison::AtMost, time) => 0..=*time,
            Self::Time(Comparison::Greater | Comparison::AtLeast, time) => *time..=u64::MAX,
            _ => always,
        }
    }

    /// Returns a query that selects the transactions which both queries select.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::All(vec![self, other])
    }
}

#[cfg(test)]
mod tests;
