//! An answer that is being read: its head says whose body it is, and every byte of that is checked.

use super::Unanswered;
use crate::load::outcome::Answered;
use crate::wire::{OBJECT_ID, REQUEST_ID};
use foxy_workload::{BodyCheck, BodyStream, Content, Request};

pub struct Reading {
    content: Content,
    answer: Option<Answered>,
    check: Option<BodyCheck>,
    breaks_off: Option<u64>,
}

impl Reading {
    /// `breaks_off`: body bytes after which the client aborts.
    pub const fn new(request: &Request, breaks_off: Option<u64>) -> Self {
        Self { content: request.content, answer: None, check: None, breaks_off }
    }

    pub const fn head(&self) -> Option<Answered> {
        self.answer
    }

    pub fn begin<'a>(&mut self, status: u16, field: impl Fn(&str) -> Option<&'a str>) {
        let reply_to = field(REQUEST_ID).and_then(|id| id.parse().ok());
        let object = field(OBJECT_ID).and_then(|text| text.split_once('.'));
        let object =
            object.and_then(|(key, version)| Some((key.parse().ok()?, version.parse().ok()?)));
        let body = match self.content {
            Content::Object(object, _) => Some(BodyStream::new(object.id, object.version)),
            Content::Document(document) => object.map(|(_, version)| document.body(version)),
        };
        self.check = body.filter(|_| status == 200).map(|body| BodyCheck::new(body, 0));
        self.answer = Some(Answered { status, reply_to, object, ..Answered::default() });
    }

    pub fn take(&mut self, data: &[u8]) -> Result<(), Unanswered> {
        if let Some(answer) = &mut self.answer {
            answer.length += data.len() as u64;
            if let Some(check) = &mut self.check {
                check.take(data);
            }
            if self.breaks_off.is_some_and(|at| answer.length > at) {
                return Err(Unanswered::BrokenOff);
            }
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Option<Answered> {
        let wrong_bytes = self.check.take().map_or(0, |check| check.wrong_bytes());
        self.answer.map(|answer| Answered { wrong_bytes, ..answer })
    }
}
