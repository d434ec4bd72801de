//! The suite's checks as data, in the format that vectors.mjs prints. Also says which checks need
//! sockets, because the caching rules alone cannot run them.

use crate::suite::Cut;
use serde::Deserialize;

/// A check of the suite.
#[derive(Debug, Deserialize)]
pub struct Vector {
    pub id: String,
    pub kind: String,
    pub needs: Vec<String>,
    pub steps: Vec<Step>,
}

/// A step of a check: a request, the origin's response to it, and the expected results.
#[derive(Debug, Deserialize)]
pub struct Step {
    /// Time of the request, in seconds since 1970.
    pub at: u64,
    /// Number of seconds from the request to the origin's response.
    pub seconds: u64,
    pub method: String,
    pub path: String,
    pub fields: Vec<(String, String)>,
    pub answer: OriginAnswer,
    pub expects: Expectations,
    /// Whether the origin also sends interim (1xx) responses.
    pub interim: bool,
}

/// The response of the origin.
#[derive(Debug, Deserialize)]
pub struct OriginAnswer {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: String,
    /// Whether the origin closes the connection without a response.
    pub disconnects: bool,
    /// Names and values of request fields. If the request has one of these values, the origin
    /// responds with 304.
    pub confirms: Vec<(String, String)>,
    /// Fields that the client must receive unchanged.
    pub shown: Vec<(String, String)>,
}

/// Whether the response may come from the cache, from the origin, or from a validation.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFrom {
    Any,
    Cached,
    NotCached,
    EtagValidated,
    LmValidated,
}

/// Expected results of a step.
#[derive(Debug, Deserialize)]
pub struct Expectations {
    pub from: AnswerFrom,
    pub status: Option<u16>,
    /// Expected fields of the response to the client.
    pub fields: Vec<Expectation>,
    /// Names of fields that the response to the client must not contain.
    pub missing: Vec<String>,
    pub body: Option<Body>,
    /// Expected fields of the request that the origin receives. `None` accepts any value.
    pub sent: Vec<(String, Option<String>)>,
    /// Expected method of the request that the origin receives.
    pub method: Option<String>,
}

/// Expected value of a field.
#[derive(Debug, Deserialize)]
pub struct Expectation {
    pub name: String,
    #[serde(flatten)]
    pub value: Value,
}

/// The value that a field must have.
#[derive(Debug, Deserialize)]
#[serde(tag = "is", content = "as", rename_all = "snake_case")]
pub enum Value {
    There,
    Text(String),
    /// A date that is this number of seconds after the origin's response.
    Dated(i64),
    /// A number greater than this number.
    Above(i64),
    /// The value of the field with this name.
    Same(String),
}

/// The expected body of a response.
#[derive(Debug, Deserialize)]
pub struct Body {
    pub text: String,
    /// Whether the body is checked even if the status allows no body.
    pub always: bool,
}

/// Reason why a check of the suite cannot run against the caching rules alone, without sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplayable {
    /// The check concerns 1xx responses.
    Interim,
    /// The check concerns hop-by-hop fields, which end at the next server.
    HopByHop,
    /// The check concerns a body that ends with the connection, without a length or chunks.
    Framing,
    /// The check contains characters outside ASCII. Node.js sends them as UTF-8 if the message has
    /// a body, and otherwise as Latin-1.
    BeyondAscii,
}

impl Unplayable {
    /// Returns the text of this reason in docs/conformance.md.
    pub fn description(self) -> &'static str {
        match self {
            Self::Interim => "the rules see no interim responses",
            Self::HopByHop => "the rules do not see hop-by-hop fields",
            Self::Framing => "the rules do not decide where a body ends",
            Self::BeyondAscii => "Node.js sends obs-text as UTF-8 or Latin-1",
        }
    }
}

/// Names of fields that end at the next server.
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
    /// Returns why the caching rules alone cannot run this check. Returns `None` if they can run
    /// it.
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
    /// Whether the origin sends fewer body bytes than its `Content-Length` says.
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

/// Reads all checks of this version that apply to proxies.
pub fn read(cut: &Cut) -> Vec<Vector> {
    let output = String::from_utf8(cut.output("vectors", &[])).expect("JSON");
    let vector =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    output.lines().map(vector).collect()
}
