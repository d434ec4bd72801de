//! Parses the values in rules. Each error tells the user how to write the value.

use foxy_base::Cidr;
use foxy_cli::units::parse_duration;
use foxy_rules::operator::{NamedPattern, Pattern, path_pattern};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Header fields that no rule may change, because foxy itself uses them to frame and route
/// messages.
const FRAMING_FIELDS: [&str; 13] = [
    "age",
    "connection",
    "content-length",
    "content-range",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Names of header fields with their new values, for `request-header-set` and
/// `response-header-set`.
#[derive(Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub struct FieldTable(pub Vec<(String, String)>);

impl TryFrom<BTreeMap<String, String>> for FieldTable {
    type Error = String;

    fn try_from(fields: BTreeMap<String, String>) -> Result<Self, String> {
        let checked = fields.into_iter().map(|(name, value)| {
            let FieldName(name) = name.parse()?;
            let is_value = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
            if value.bytes().all(is_value) {
                Ok((name, value))
            } else {
                Err(format!("the value of {name} must be one line of ASCII text"))
            }
        });
        checked.collect::<Result<_, String>>().map(Self)
    }
}

/// The name of a header field that a rule may change.
pub struct FieldName(pub String);

impl FromStr for FieldName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !is_token(text) {
            return Err(format!("`{text}` is not a name of a field; write a name such as X-Cache"));
        }
        if FRAMING_FIELDS.contains(&text.to_ascii_lowercase().as_str()) {
            return Err(format!("no rule may change {text}, because foxy manages this field"));
        }
        Ok(Self(text.to_owned()))
    }
}

/// Returns whether a text is a token (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

pub struct ClientNetwork(pub Cidr);

impl FromStr for ClientNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let block = Cidr::masked(text);
        block.map(Self).map_err(|_| format!("`{text}` is not a network; write 192.0.2.0/24"))
    }
}

/// A pattern for the path of a URL.
pub struct PathText(pub Pattern);

impl FromStr for PathText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        path_pattern(text).map(Self)
    }
}

pub struct SchemeText(pub String);

impl FromStr for SchemeText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "http" | "https" => Ok(Self(text.to_owned())),
            _ => Err(format!("`{text}` is not a scheme; write http or https")),
        }
    }
}

/// A method of requests (RFC 9110 §9.1), in upper case.
pub struct MethodName(pub String);

impl FromStr for MethodName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !is_token(text) {
            return Err(format!(
                "`{text}` is not a method; write GET or [\"GET\", \"HEAD\"] for several"
            ));
        }
        Ok(Self(text.to_ascii_uppercase()))
    }
}

/// A pattern for the names of query parameters.
pub struct ParameterName(pub Pattern);

impl FromStr for ParameterName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parameter_name(text)?;
        text.parse().map(Self)
    }
}

fn parameter_name(text: &str) -> Result<(), String> {
    if text.contains(", ") {
        let names: Vec<String> = text.split(", ").map(|name| format!("\"{name}\"")).collect();
        return Err(format!(
            "`{text}` is not a name of a parameter; write a list: [{}]",
            names.join(", ")
        ));
    }
    match text.contains(['&', '=']) {
        true => Err(format!("`{text}` is not a name of a parameter; it has `&` or `=`")),
        false => Ok(()),
    }
}

pub struct Parameter(pub NamedPattern);

impl FromStr for Parameter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = named(text, '=')?;
        parameter_name(&named.name)?;
        Ok(Self(named))
    }
}

pub struct Field(pub NamedPattern);

impl FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = named(text, ':')?;
        if !is_token(&named.name) {
            return Err(format!(
                "`{}` is not a name of a field; write NAME or NAME: PATTERN",
                named.name
            ));
        }
        Ok(Self(named))
    }
}

fn named(text: &str, mark: char) -> Result<NamedPattern, String> {
    let (name, value) = match text.split_once(mark) {
        Some((name, value)) => (name.trim(), Some(value.trim().parse()?)),
        None => (text.trim(), None),
    };
    if name.is_empty() {
        return Err(format!("`{text}` has no name; write NAME or NAME{mark}PATTERN"));
    }
    Ok(NamedPattern { name: name.to_owned(), value })
}

/// A status code of a final response (RFC 9110 §15).
pub struct FinalStatus(pub u16);

impl FromStr for FinalStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(status @ 200..=599) => Ok(Self(status)),
            _ => Err(format!("`{text}` is not a status of a response; write 200 to 599")),
        }
    }
}

pub struct Seconds(pub u64);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_duration(text).map(|time| Self(time.as_secs()))
    }
}
