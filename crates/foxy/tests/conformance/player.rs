//! Runs a check of the suite in virtual time against foxy's caching rules. Plays the suite's origin
//! and client, and judges results as the suite does in client/test.mjs and server/handle-test.mjs.

use crate::miniature::{Answer, Came, Lines, Miniature, Request, Response};
use crate::vectors::{AnswerFrom, Body, Expectation, OriginAnswer, Step, Value, Vector};
use foxy_base::WallTime;
use foxy_rules::{Fields, Role, date};

/// A request that the simulated origin received.
struct Seen {
    /// Number that the client gave the request, counted from 1.
    number: usize,
    method: String,
    fields: Lines,
}

/// Runs a check. The error says which result was wrong.
pub fn play(vector: &Vector) -> Result<(), String> {
    let mut cache = Miniature::new(Role::Gateway.into());
    let mut seen = Vec::new();
    let mut responses = Vec::new();
    for (step, number) in vector.steps.iter().zip(1..) {
        let request = Request {
            method: step.method.clone(),
            url: format!("http://origin.test{}", step.path),
            fields: Lines(step.fields.clone()),
        };
        let mut origin = |asked: &Request| answered(step, number, asked, &mut seen);
        let answer = cache.answer(WallTime::from_seconds(step.at), &request, &mut origin);
        client_expects(step, number, &answer)?;
        responses.push(answer.response);
    }
    origin_expects(&vector.steps, &seen, &responses)
}

fn answered(step: &Step, number: usize, asked: &Request, seen: &mut Vec<Seen>) -> Came {
    let OriginAnswer { mut status, disconnects, ref fields, ref body, ref confirms, .. } =
        step.answer;
    seen.push(Seen { number, method: asked.method.clone(), fields: asked.fields.clone() });
    if disconnects {
        return None;
    }
    let mut fields = Lines(fields.clone());
    let numbers: Vec<String> = seen.iter().map(|seen| seen.number.to_string()).collect();
    fields.add("Server-Request-Count", seen.len().to_string());
    fields.add("Request-Numbers", numbers.join(" "));
    let is_confirmed =
        |(name, value): &(String, String)| joined(&asked.fields, name).as_ref() == Some(value);
    if confirms.iter().any(is_confirmed) {
        status = 304;
    }
    let mut body = body.clone().into_bytes();
    let said = joined(&fields, "content-length").and_then(|text| text.parse().ok());
    body.truncate(said.unwrap_or(body.len()));
    if has_no_body(status) {
        body.clear();
    } else if said.is_none() {
        fields.add("Content-Length", body.len().to_string());
    }
    if asked.method == "HEAD" {
        body.clear();
    }
    Some((Response { status, fields, body }, step.seconds))
}

fn has_no_body(status: u16) -> bool {
    matches!(status, 204 | 304)
}

/// Returns the value of a field. If the field has several lines, joins their values as JavaScript
/// does.
fn joined(fields: &Lines, name: &str) -> Option<String> {
    let lines: Vec<_> = fields.values(name).map(String::from_utf8_lossy).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

fn number_in(fields: &Lines, name: &str) -> Option<i64> {
    joined(fields, name)?.trim().parse().ok()
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

fn client_expects(step: &Step, number: usize, answer: &Answer) -> Result<(), String> {
    let Answer { source, response: Response { status, fields, body } } = answer;
    let numbers = joined(fields, "request-numbers").unwrap_or_default();
    let mut numbers: Vec<&str> = numbers.split(' ').collect();
    let asked = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    ensure(numbers.len() == asked, || format!("request {number} came to the origin twice"))?;
    let count =
        number_in(fields, "server-request-count").and_then(|count| usize::try_from(count).ok());
    match step.expects.from {
        AnswerFrom::Cached if *status == 304 && count.is_none() => {}
        AnswerFrom::Cached => {
            ensure(count.is_some_and(|count| count < number), || {
                format!("{number} is {source:?}")
            })?;
        }
        AnswerFrom::NotCached => {
            ensure(count == Some(number), || format!("{number} is {source:?}"))?
        }
        AnswerFrom::Any | AnswerFrom::EtagValidated | AnswerFrom::LmValidated => {}
    }
    let as_expected = step.expects.status.is_none_or(|expected| expected == *status);
    ensure(as_expected, || format!("the status of {number} is {status}"))?;
    for expectation in &step.expects.fields {
        let Expectation { name, .. } = expectation;
        let value = joined(fields, name);
        ensure(is_met(expectation, fields), || format!("{name} of {number} is {value:?}"))?;
    }
    for name in &step.expects.missing {
        ensure(!fields.has(name), || format!("{number} has {name}"))?;
    }
    match &step.expects.body {
        Some(Body { text, always }) if *always || !has_no_body(*status) => {
            let body = String::from_utf8_lossy(body);
            ensure(body == *text, || format!("the body of {number} is {body}"))
        }
        _ => Ok(()),
    }
}

fn is_met(expectation: &Expectation, fields: &Lines) -> bool {
    let Some(value) = joined(fields, &expectation.name) else { return false };
    match &expectation.value {
        Value::There => true,
        Value::Text(text) => value == *text,
        Value::Same(other) => joined(fields, other).as_ref() == Some(&value),
        Value::Above(limit) => {
            number_in(fields, &expectation.name).is_some_and(|number| number > *limit)
        }
        Value::Dated(seconds) => {
            let expected = number_in(fields, "server-now").map(|now| now / 1000 + seconds);
            let date = date::parse(value.as_bytes(), WallTime::from_seconds(0));
            date.and_then(|date| i64::try_from(date.seconds()).ok()) == expected
                && expected.is_some()
        }
    }
}

/// Checks that the origin received the expected requests in the expected order.
fn origin_expects(steps: &[Step], seen: &[Seen], responses: &[Response]) -> Result<(), String> {
    let mut seen = seen.iter();
    for ((step, response), number) in steps.iter().zip(responses).zip(1..) {
        let expects = &step.expects;
        if expects.from == AnswerFrom::Cached {
            continue;
        }
        let request = seen.next();
        let validator = match expects.from {
            AnswerFrom::NotCached => {
                let came = request.is_some_and(|request| request.number == number);
                ensure(came, || format!("request {number} did not come to the origin"))?;
                None
            }
            AnswerFrom::EtagValidated => Some(("if-none-match".to_owned(), None)),
            AnswerFrom::LmValidated => Some(("if-modified-since".to_owned(), None)),
            AnswerFrom::Any | AnswerFrom::Cached => None,
        };
        for (name, value) in validator.iter().chain(&expects.sent) {
            let sent = request.and_then(|request| joined(&request.fields, name));
            let as_expected = sent.is_some() && (value.is_none() || sent == *value);
            ensure(as_expected, || format!("{name} in request {number} is {sent:?}"))?;
        }
        let Some(request) = request else { continue };
        for (name, value) in &steps[request.number - 1].answer.shown {
            let shown = joined(&response.fields, name);
            ensure(shown.as_ref() == Some(value), || {
                format!("{name} of {number} is {shown:?}, not {value}")
            })?;
        }
        let method = &request.method;
        ensure(expects.method.as_ref().is_none_or(|expected| expected == method), || {
            format!("the method of request {number} is {method}")
        })?;
    }
    Ok(())
}
