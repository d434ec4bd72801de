//! Requests to the JetStream API of a NATS server, and its answers in JSON. Only the server that
//! leads a stream answers these requests.

use super::connection::request;
use crate::purges::engine::EngineError;
use async_nats::{Client, HeaderMap};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// JetStream's error code for a stream that does not exist.
pub const NO_STREAM: u64 = 10059;
/// JetStream's error code for a last message with another number than the sender expected.
pub const WRONG_LAST: u64 = 10071;
/// JetStream's error code for a message that does not exist.
const NO_MESSAGE: u64 = 10037;

/// An error in JetStream's answer.
#[derive(Debug, Deserialize)]
pub struct Refusal {
    /// JetStream's code of this error.
    #[serde(default)]
    pub err_code: u64,
    #[serde(default)]
    description: String,
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        Self::Away(format!("JetStream: {} ({})", refusal.description, refusal.err_code))
    }
}

/// JetStream's description of a stream.
#[derive(Debug, Deserialize)]
pub struct StreamInfo {
    /// The configuration of the stream.
    pub config: StreamConfig,
    /// The time when the stream was created.
    pub created: String,
    /// The count and the sequence numbers of the stream's messages, at the moment of the
    /// description.
    pub state: StreamState,
    /// The servers that store the stream. `None` if the server is not part of a cluster.
    pub cluster: Option<StreamCluster>,
}

/// The configuration of a stream.
#[derive(Debug, Deserialize)]
pub struct StreamConfig {
    /// Number of servers that store a copy of the stream.
    pub num_replicas: u64,
    /// Where the stream is stored: `file` or `memory`.
    pub storage: String,
    /// Whether a message can remove all earlier messages.
    #[serde(default)]
    pub allow_rollup_hdrs: bool,
}

/// The count and the sequence numbers of a stream's messages.
#[derive(Debug, Deserialize)]
pub struct StreamState {
    /// Number of messages in the stream.
    pub messages: u64,
    /// Sequence number of the stream's first message.
    pub first_seq: u64,
    /// Highest sequence number that a message of the stream ever had.
    pub last_seq: u64,
    /// The subjects of the stream's messages, if the request asks for them.
    #[serde(default)]
    pub subjects: BTreeMap<String, u64>,
}

/// The servers that store a stream.
#[derive(Debug, Deserialize)]
pub struct StreamCluster {
    /// Name of the server that leads the stream.
    pub leader: Option<String>,
}

#[derive(Deserialize)]
struct Got {
    message: GotMessage,
}

#[derive(Deserialize)]
struct GotMessage {
    seq: u64,
    #[serde(default)]
    data: String,
}

#[derive(Deserialize)]
struct Published {
    seq: u64,
}

fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<Result<T, Refusal>, EngineError> {
    let unreadable = |_| EngineError::Unexpected("JSON");
    let mut value: Value = serde_json::from_slice(answer).map_err(unreadable)?;
    match value.get_mut("error").map(Value::take) {
        Some(error) => Ok(Err(serde_json::from_value(error).map_err(unreadable)?)),
        None => Ok(Ok(serde_json::from_value(value).map_err(unreadable)?)),
    }
}

/// Sends a request to JetStream's API, and parses the answer.
pub async fn ask<T: DeserializeOwned>(
    client: &Client,
    api: &str,
    stream: &str,
    body: &Value,
) -> Result<Result<T, Refusal>, EngineError> {
    let (subject, body) = (format!("$JS.API.STREAM.{api}.{stream}"), body.to_string());
    read(&request(client, subject, HeaderMap::new(), body.into_bytes()).await?.payload)
}

/// Returns the description of a stream, with the subjects of its messages.
pub async fn describe(client: &Client, stream: &str) -> Result<StreamInfo, EngineError> {
    Ok(ask(client, "INFO", stream, &json!({ "subjects_filter": ">" })).await??)
}

/// Returns the number and the content of a message. Returns `None` if the stream does not have it.
pub async fn get(
    client: &Client,
    stream: &str,
    which: &Value,
) -> Result<Option<(u64, Vec<u8>)>, EngineError> {
    match ask::<Got>(client, "MSG.GET", stream, which).await? {
        Ok(Got { message: GotMessage { seq, data } }) => {
            let bytes = STANDARD.decode(data).map_err(|_| EngineError::Unexpected("message"))?;
            Ok(Some((seq, bytes)))
        }
        Err(refusal) if refusal.err_code == NO_MESSAGE => Ok(None),
        Err(refusal) => Err(refusal.into()),
    }
}

/// Removes from a stream the messages with a lower number than `before`. If `subject` is given,
/// removes only messages of this subject.
pub async fn remove(
    client: &Client,
    stream: &str,
    subject: Option<&str>,
    before: u64,
) -> Result<(), EngineError> {
    let body = json!({ "filter": subject.unwrap_or_default(), "seq": before });
    ask::<Value>(client, "PURGE", stream, &body).await??;
    Ok(())
}

/// Publishes a message to a stream. Returns the message's number after the stream has stored it.
pub async fn publish(
    client: &Client,
    subject: String,
    headers: HeaderMap,
    payload: Vec<u8>,
) -> Result<Result<u64, Refusal>, EngineError> {
    let answer = request(client, subject, headers, payload).await?;
    Ok(read::<Published>(&answer.payload)?.map(|published| published.seq))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_refusals_have_codes() {
        let answer = br#"{"error":{"code":400,"err_code":10071,"description":"wrong"},"seq":0}"#;
        let refusal = read::<Published>(answer).expect("JSON").err().expect("a refusal");
        assert_eq!(refusal.err_code, WRONG_LAST);
        assert_eq!(
            EngineError::from(refusal),
            EngineError::Away("JetStream: wrong (10071)".to_owned())
        );
        let answer = br#"{"stream":"x","seq":7}"#;
        assert_eq!(read::<Published>(answer).expect("JSON").expect("published").seq, 7);
        for other in [&b""[..], b"{}", b"{\"error\":7}"] {
            assert!(read::<Published>(other).is_err());
        }
    }
}
