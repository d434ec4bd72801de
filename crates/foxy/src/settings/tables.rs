//! Lists of tables in the configuration file, such as `[[rule]]`. Has the type of a table that was
//! read, and the common forms of values in such tables.

use super::complaint::Source;
use super::secrets;
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// A table that was read: its value, its TOML text, and its place in the file.
#[derive(Debug)]
pub struct WrittenTable<T> {
    pub value: T,
    pub text: toml::Table,
    pub source: Source,
}

/// The name of a table such as a rule, and its other keys as TOML text on one line.
pub struct TableTexts<'a> {
    pub name: &'a str,
    /// The text for people, without secrets.
    pub shown: String,
    /// The whole text with its secrets. foxy shows this text to nobody.
    pub whole: String,
}

impl<T> WrittenTable<T> {
    /// Returns the texts of the table, whose name is `name`.
    pub fn texts<'a>(&self, name: &'a str, keys: &[&str]) -> TableTexts<'a> {
        let text = |table| lines(table, keys).collect::<Vec<_>>().join(", ");
        TableTexts { name, shown: text(&secrets::hidden(&self.text)), whole: text(&self.text) }
    }
}

/// Returns a line of TOML for each of these keys that the table has.
fn lines(table: &toml::Table, keys: &[&str]) -> impl Iterator<Item = String> {
    keys.iter().filter_map(|key| table.get(*key).map(|value| format!("{key} = {value}")))
}

/// Returns the tables of the list `name` as text for a configuration file, without secrets. A
/// comment after each heading gives the file, line and column of the table.
pub fn show<T>(name: &str, written: &[WrittenTable<T>], keys: &[&str]) -> String {
    let tables = written.iter().map(|written| {
        let lines: Vec<String> = lines(&secrets::hidden(&written.text), keys).collect();
        format!("\n[[{name}]] # {}\n{}", written.source, lines.join("\n"))
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// A value that is a string in TOML. `FromStr` parses it. An integer gets the parser's message,
/// which tells how to write the value.
pub struct Parsed<T>(pub T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParsedVisitor(PhantomData))
    }
}

struct ParsedVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for ParsedVisitor<T> {
    type Value = Parsed<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Parsed<T>, E> {
        text.parse().map(Parsed).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Parsed<T>, E> {
        match self.visit_str::<E>(&number.to_string()) {
            Ok(_) => Err(E::custom(format!("the value must be a text; write \"{number}\""))),
            Err(error) => Err(error),
        }
    }
}

/// A value or a list of values. In TOML, each value is a string or an integer.
#[derive(Debug)]
pub struct Values<T>(pub Vec<T>);

impl<T> Default for Values<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Values<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValuesVisitor(PhantomData))
    }
}

struct ValuesVisitor<T>(PhantomData<T>);

impl<'de, T: FromStr<Err: fmt::Display>> Visitor<'de> for ValuesVisitor<T> {
    type Value = Values<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Values<T>, E> {
        text.parse().map(|value| Values(vec![value])).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Values<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Values<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(Values(values)) = list.next_element::<Values<T>>()? {
            all.extend(values);
        }
        Ok(Values(all))
    }
}
