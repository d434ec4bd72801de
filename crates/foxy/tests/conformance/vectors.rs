//! The suite's checks as data, as vectors.mjs prints them, and which of them are not for the rules
//! to play.

use crate::suite::Cut;
use serde::Deserialize;

/// A check.
#[derive(Debug, Deserialize)]
pub struct Vector {
    pub id: String,
    pub kind: String,
    pub needs: Vec<String>,
    pub steps: Vec<Step>,
}

/// A request, what the origin would answer, and what must be seen.
#[derive(Debug, Deserialize)]
pub struct Step {
    /// When the request comes, in seconds since 1970.
    pub at: u64,
    /// How long the origin takes.
    pub seconds: u64,
    pub method: String,
    pub path: String,
    pub fields: Vec<(String, String)>,
    pub answer: OriginAnswer,
    pub expects: Expectations,
    /// Whether interim responses are part of it.
    pub interim: bool,
}

/// The answer of the origin.
#[derive(Debug, Deserialize)]
pub struct OriginAnswer {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: String,
    /// Closes the connection instead.
    pub disconnects: bool,
    /// Request fields of which any with that value makes it a 304.
    pub confirms: Vec<(String, String)>,
    /// Fields that must reach the client as they are here.
    pub shown: Vec<(String, String)>,
}

/// Where the suite expects an answer from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFrom {
    Any,
    Cached,
    NotCached,
    EtagValidated,
    LmValidated,
}

/// Expectations of a step.
#[derive(Debug, Deserialize)]
pub struct Expectations {
    pub from: AnswerFrom,
    pub status: Option<u16>,
    /// Fields of the client's response.
    pub fields: Vec<Expectation>,
    /// Names that the client's response must not have.
    pub missing: Vec<String>,
    pub body: Option<Body>,
    /// Fields of the request that the origin sees; without a value, any will do.
    pub sent: Vec<(String, Option<String>)>,
    /// The method that the origin sees.
    pub method: Option<String>,
}

/// The expectation of a field.
#[derive(Debug, Deserialize)]
pub struct Expectation {
    pub name: String,
    #[serde(flatten)]
    pub value: Value,
}

/// A field's value.
#[derive(Debug, Deserialize)]
#[serde(tag = "is", content = "as", rename_all = "snake_case")]
pub enum Value {
    There,
    Text(String),
    /// A date that many seconds after the origin's answer.
    Dated(i64),
    /// Above that number.
    Above(i64),
    /// That of another field.
    Same(String),
}

/// A body.
#[derive(Debug, Deserialize)]
pub struct Body {
    pub text: String,
    /// Even where the status allows none.
    pub always: bool,
}

/// Why the rules cannot play a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplayable {
    /// The check concerns 1xx responses.
    Interim,
    /// The check concerns fields that end at the next hop.
    HopByHop,
    /// The check concerns a body without a visible end.
    Framing,
    /// The check has letters beyond ASCII. Node.js sends them as UTF-8 with a body and as Latin-1
    /// without.
    BeyondAscii,
}

impl Unplayable {
    /// As docs/conformance.md has it.
    pub fn description(self) -> &'static str {
        match self {
            Self::Interim => "interim responses",
            Self::HopByHop => "fields that end at the next hop",
            Self::Framing => "where a body ends",
            Self::BeyondAscii => "one letter that Node.js sends in two codings",
        }
    }
}

/// Fields that end at the next hop.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

impl Vector {
    /// Why the rules cannot play it, if they cannot.
    pub fn unplayable(&self) -> Option<Unplayable> {
        let lines =
            self.steps.iter().flat_map(|step| step.fields.iter().chain(&step.answer.fields));
        let interim = self.steps.iter().any(|step| step.interim);
        let has = |names: &[&str]| {
            lines.clone().any(|(name, _)| names.contains(&name.to_ascii_lowercase().as_str()))
        };
        if interim {
            Some(Unplayable::Interim)
        } else if has(&HOP_BY_HOP) {
            Some(Unplayable::HopByHop)
        } else if has(&["transfer-encoding"]) || self.steps.iter().any(Step::ends_early) {
            Some(Unplayable::Framing)
        } else if lines.clone().any(|(_, value)| !value.is_ascii()) {
            Some(Unplayable::BeyondAscii)
        } else {
            None
        }
    }
}

impl Step {
    /// Whether the body is shorter than its length says.
    fn ends_early(&self) -> bool {
        let bodiless = !self.answer.confirms.is_empty();
        let lengths = self
            .answer
            .fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let mut lengths = lengths.filter_map(|(_, value)| value.parse::<usize>().ok());
        !bodiless && lengths.any(|length| length > self.answer.body.len())
    }
}

/// All checks of a cut that are for proxies.
pub fn read(cut: &Cut) -> Vec<Vector> {
    let output = String::from_utf8(cut.output("vectors", &[])).expect("JSON");
    let vector =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    output.lines().map(vector).collect()
}
