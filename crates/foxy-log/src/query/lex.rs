//! Splits the text of a query into tokens.

use super::{Comparison, QueryError, QueryFault};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A field, a connective, or a value without quotes.
    Word(String),
    /// A value in quotation marks.
    Quoted(String),
    Comparison(Comparison),
    /// The operator `~` or `!~` of a regular expression. The flag is true for `!~`.
    Pattern(bool),
    Open,
    Close,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Position of the token's first character in the query, from 1.
    pub(super) column: usize,
}

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    let characters: Vec<char> = text.chars().collect();
    let (mut at, mut tokens) = (0, Vec::new());
    while let Some(&character) = characters.get(at) {
        if character.is_whitespace() {
            at += 1;
            continue;
        }
        let fault = |reason| QueryError { column: at + 1, reason };
        let (kind, length) = match (character, characters.get(at + 1)) {
            ('(', _) => (TokenKind::Open, 1),
            (')', _) => (TokenKind::Close, 1),
            ('!', Some('=')) => (TokenKind::Comparison(Comparison::Different), 2),
            ('<', Some('=')) => (TokenKind::Comparison(Comparison::AtMost), 2),
            ('>', Some('=')) => (TokenKind::Comparison(Comparison::AtLeast), 2),
            ('=', Some('=')) => (TokenKind::Comparison(Comparison::Equal), 2),
            ('!', Some('~')) => (TokenKind::Pattern(true), 2),
            ('=', _) => (TokenKind::Comparison(Comparison::Equal), 1),
            ('<', _) => (TokenKind::Comparison(Comparison::Less), 1),
            ('>', _) => (TokenKind::Comparison(Comparison::Greater), 1),
            ('~', _) => (TokenKind::Pattern(false), 1),
            ('"' | '\'' | '“' | '„', _) => {
                quoted(&characters[at..]).ok_or_else(|| fault(QueryFault::Unquoted))?
            }
            ('&' | '|' | '!', _) => return Err(fault(QueryFault::BadCharacter(character))),
            _ => {
                let ends = |one: &char| one.is_whitespace() || "()=<>!~\"".contains(*one);
                let rest = &characters[at..];
                let length = rest.iter().position(ends).unwrap_or(rest.len()).max(1);
                (TokenKind::Word(rest[..length].iter().collect()), length)
            }
        };
        tokens.push(Token { kind, column: at + 1 });
        at += length;
    }
    Ok(tokens)
}

/// Reads a text in quotation marks, in which `\` escapes a quotation mark or another `\`. Returns
/// the token and its length in characters.
fn quoted(characters: &[char]) -> Option<(TokenKind, usize)> {
    let close: &[char] = match characters[0] {
        '“' | '„' => &['”', '“'],
        '\'' => &['\''],
        _ => &['"'],
    };
    let (mut value, mut at) = (String::new(), 1);
    loop {
        match (*characters.get(at)?, characters.get(at + 1)) {
            (character, _) if close.contains(&character) => {
                return Some((TokenKind::Quoted(value), at + 1));
            }
            ('\\', Some(&next)) if close.contains(&next) || next == '\\' => {
                value.push(next);
                at += 2;
            }
            (character, _) => {
                value.push(character);
                at += 1;
            }
        }
    }
}
