//! Builds a query from its tokens. `and` binds more tightly than `or`, and `not` binds more tightly
//! than both.

use super::lex::{Token, TokenKind, tokens};
use super::{Comparison, Query, QueryError, QueryFault, value};
use crate::field::{self, Field, FieldKind, Get};
use foxy_base::Cidr;
use regex::Regex;

/// Largest depth of nested parentheses and `not` operators.
const MAX_DEPTH: usize = 64;

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// Column after the last character of the query, for errors at its end.
    end: usize,
    now: u64,
}

pub(super) fn parse(text: &str, now: u64) -> Result<Query, QueryError> {
    let (tokens, end) = (tokens(text)?, text.chars().count() + 1);
    if tokens.is_empty() {
        return Ok(Query::All(Vec::new()));
    }
    let mut parser = Parser { tokens, at: 0, end, now };
    let query = parser.any(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(query),
        Some(Token { kind: TokenKind::Close, .. }) => parser.fails(QueryFault::Unclosed),
        Some(token) => {
            let found = shown(&token.kind);
            parser.fails(QueryFault::NoConnective(found))
        }
    }
}

fn shown(kind: &TokenKind) -> String {
    match kind {
        TokenKind::Word(text) | TokenKind::Quoted(text) => text.clone(),
        TokenKind::Open => "(".to_owned(),
        TokenKind::Close => ")".to_owned(),
        TokenKind::Comparison(_) | TokenKind::Pattern(_) => "the comparison".to_owned(),
    }
}

impl Parser {
    fn fails<T>(&self, reason: QueryFault) -> Result<T, QueryError> {
        let column = self.tokens.get(self.at).map_or(self.end, |token| token.column);
        Err(QueryError { column, reason })
    }

    /// Takes the next token if it is the word `word`. Returns whether it took the token.
    fn takes(&mut self, word: &str) -> bool {
        let next = self.tokens.get(self.at).map(|token| &token.kind);
        let is = matches!(next, Some(TokenKind::Word(text)) if text.eq_ignore_ascii_case(word));
        self.at += usize::from(is);
        is
    }

    fn any(&mut self, depth: usize) -> Result<Query, QueryError> {
        let mut parts = vec![self.all(depth)?];
        while self.takes("or") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Query::Any(parts) })
    }

    fn all(&mut self, depth: usize) -> Result<Query, QueryError> {
        let mut parts = vec![self.condition(depth)?];
        while self.takes("and") {
            parts.push(self.condition(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Query::All(parts) })
    }

    fn condition(&mut self, depth: usize) -> Result<Query, QueryError> {
        if depth > MAX_DEPTH {
            return self.fails(QueryFault::TooDeep);
        }
        if self.takes("not") {
            return Ok(Query::Not(Box::new(self.condition(depth + 1)?)));
        }
        match self.tokens.get(self.at).map(|token| token.kind.clone()) {
            Some(TokenKind::Open) => {
                let open = self.at;
                self.at += 1;
                let query = self.any(depth + 1)?;
                if !matches!(self.tokens.get(self.at), Some(Token { kind: TokenKind::Close, .. })) {
                    self.at = open;
                    return self.fails(QueryFault::Unclosed);
                }
                self.at += 1;
                Ok(query)
            }
            Some(TokenKind::Word(name)) => match field::named(&name.to_ascii_lowercase()) {
                Some(field) => self.comparison(field),
                None => self.fails(QueryFault::UnknownField(name)),
            },
            _ => self.fails(QueryFault::NoCondition),
        }
    }

    fn comparison(&mut self, field: &'static Field) -> Result<Query, QueryError> {
        self.at += 1;
        let operator = self.tokens.get(self.at).map(|token| token.kind.clone());
        match (operator, field.get) {
            (Some(TokenKind::Comparison(comparison)), Get::Number(get)) => {
                let value = self.value()?;
                let number = self.number(field.kind, &value)?;
                Ok(match (field.kind, number) {
                    (FieldKind::Time, Some(time)) => Query::Time(comparison, time),
                    (_, number) => Query::Number(get, comparison, number),
                })
            }
            (Some(TokenKind::Comparison(comparison)), Get::Text(get))
                if matches!(comparison, Comparison::Equal | Comparison::Different) =>
            {
                let value = self.value()?;
                let block = value.contains('/').then(|| value.parse::<Cidr>());
                let equal = match block.filter(|_| field.kind == FieldKind::Address) {
                    Some(Ok(block)) => Query::Within(get, block),
                    Some(Err(_)) => return self.bad_value(field.kind, &value),
                    None if field.kind == FieldKind::Host => Query::EqualHost(get, value),
                    None => Query::Equal(get, value),
                };
                Ok(negated(comparison == Comparison::Different, equal))
            }
            (Some(TokenKind::Pattern(is_negated)), Get::Text(get)) => {
                let value = self.value()?;
                match Regex::new(&value) {
                    Ok(regex) => Ok(negated(is_negated, Query::Match(get, regex))),
                    Err(error) => {
                        self.at -= 1;
                        let why = error.to_string();
                        let why = why.lines().last().unwrap_or_default();
                        let why = why.strip_prefix("error: ").unwrap_or(why).to_owned();
                        self.fails(QueryFault::BadPattern(why))
                    }
                }
            }
            (_, Get::Number(_)) => {
                let permitted = "= != < <= > >=";
                self.fails(QueryFault::NoComparison { field: field.name, permitted })
            }
            (_, Get::Text(_)) => {
                let permitted = "= != ~ !~";
                self.fails(QueryFault::NoComparison { field: field.name, permitted })
            }
        }
    }

    /// Takes the value that must follow a comparison.
    fn value(&mut self) -> Result<String, QueryError> {
        self.at += 1;
        match self.tokens.get(self.at).map(|token| token.kind.clone()) {
            Some(TokenKind::Word(value) | TokenKind::Quoted(value)) => {
                self.at += 1;
                Ok(value)
            }
            _ => self.fails(QueryFault::NoValue),
        }
    }

    /// Reads the value of a field with numbers. The text `none` stands for an unknown number.
    fn number(&mut self, kind: FieldKind, text: &str) -> Result<Option<u64>, QueryError> {
        if text == "none" && kind != FieldKind::Time {
            return Ok(None);
        }
        let number = match kind {
            FieldKind::Bytes => value::bytes(text),
            FieldKind::Duration => value::duration(text),
            FieldKind::Time => value::time(text, self.now),
            FieldKind::Number | FieldKind::Text | FieldKind::Host | FieldKind::Address => {
                text.parse().ok()
            }
        };
        match number {
            Some(number) => Ok(Some(number)),
            None => self.bad_value(kind, text),
        }
    }

    fn bad_value<T>(&mut self, kind: FieldKind, value: &str) -> Result<T, QueryError> {
        self.at -= 1;
        let (kind, example) = kind.description();
        self.fails(QueryFault::BadValue { value: value.to_owned(), kind, example })
    }
}

fn negated(is_negated: bool, query: Query) -> Query {
    if is_negated { Query::Not(Box::new(query)) } else { query }
}
