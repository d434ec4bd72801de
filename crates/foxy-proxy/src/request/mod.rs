//! Represents a request as data: its target, the decisions about it, and the record of its answer.
//! This module does no IO.

pub mod access;
pub(crate) mod answered;
pub mod asker;
pub mod auto_config;
pub mod cache_status;
pub(crate) mod coded;
pub(crate) mod exchange;
pub(crate) mod final_dots;
pub(crate) mod forwarding_fields;
pub mod mode;
pub(crate) mod proxy_status;
pub mod reason;
pub mod sample;

pub(crate) use crate::request::access::MediaType;
pub(crate) use crate::request::answered::{
    Aborted, AnswerOptions, Answered, ClientTook, ConnectionFate, Framing, Opening, Progress,
    SendFailure, SentResponse, UnsentRest, WriteEnd,
};
pub(crate) use crate::request::cache_status::{CacheStatus, Hit};
pub(crate) use crate::request::exchange::Wanted;
pub(crate) use crate::request::reason::ErrorReason;
