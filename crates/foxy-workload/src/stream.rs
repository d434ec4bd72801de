//! The request stream of a workload: each request, with the expected properties of its response.

use crate::object::{Draw, Object};
use crate::objects::{ObjectStream, Popularity};
use crate::polymix::PolyMix4;
use crate::polymix::content::Document;
use crate::polymix::phases::Factors;
use crate::polymix::requests::{Manner, PolyMixStream, Start};
use crate::replay::ReplayStream;
use crate::table3::{Table3, Table3Stream};
use crate::workload::{Model, Workload};
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

/// The target of a request. The path of the target contains all data that an origin needs for the
/// response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A synthetic object, and the time that the origin waits before it answers.
    Object(Object, Duration),
    /// A document of PolyMix-4.
    Document(Document),
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(object, Duration::ZERO) => object.fmt(f),
            Self::Object(object, delay) => write!(f, "{object}?delay={}", delay.as_millis()),
            Self::Document(document) => document.fmt(f),
        }
    }
}

/// A request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The requested object.
    pub content: Content,
    /// Number of the origin server for the request, from 0.
    pub server: u32,
    /// Method and conditions, such as If-Modified-Since.
    pub manner: Manner,
    /// Whether an earlier request had the target of this request.
    pub repeat: bool,
}

impl Request {
    fn plain(draw: Draw, delay: Duration) -> Self {
        Self {
            content: Content::Object(draw.object, delay),
            server: draw.server,
            manner: Manner::Basic,
            repeat: draw.is_repeat,
        }
    }

    /// Returns the requests that follow the response. For a page, these are requests for its
    /// images, except after POST or HEAD.
    pub fn embedded(&self) -> impl Iterator<Item = Self> + use<> {
        let request = *self;
        let page = match (self.content, self.manner) {
            (Content::Object(..), _) | (_, Manner::Post | Manner::Head) => None,
            (Content::Document(document), _) => (document.image == 0).then_some(document),
        };
        page.into_iter().flat_map(move |page| {
            let image = move |image| Content::Document(page.with_image(image));
            (1..=page.images()).map(move |number| Self { content: image(number), ..request })
        })
    }

    /// Returns whether a cache of unlimited size could answer the request: it is a plain GET that
    /// repeats a cachable target.
    pub fn is_offered_hit(&self) -> bool {
        self.repeat && self.manner == Manner::Basic && self.is_cachable()
    }

    /// Returns whether a cache may store the response.
    pub fn is_cachable(&self) -> bool {
        self.manner != Manner::Post
            && match self.content {
                Content::Object(..) => true,
                Content::Document(document) => document.nature().cachable,
            }
    }
}

/// The requests of a workload. The seed determines all of them.
#[derive(Clone, Debug)]
pub struct RequestStream {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Objects { objects: ObjectStream, next: u64, known: Known },
    Table3 { stream: Table3Stream, delay: Duration },
    PolyMix4 { stream: PolyMixStream, servers: u32 },
    Trace(ReplayStream),
}

/// The rule by which an object of the stream counts as requested before.
#[derive(Clone, Debug)]
enum Known {
    None,
    All,
    Those(HashSet<u64>),
}

impl RequestStream {
    /// Starts the request stream of `workload`.
    pub fn new(workload: &Workload, seed: u64) -> Self {
        let source = match &workload.model {
            Model::Objects(objects) => {
                let known = match objects.popularity {
                    Popularity::AllNew => Known::None,
                    Popularity::Window { .. } => Known::All,
                    _ if objects.warm_up => Known::All,
                    Popularity::Uniform | Popularity::Zipf { .. } | Popularity::InOrder => {
                        Known::Those(HashSet::new())
                    }
                };
                Source::Objects { objects: ObjectStream::new(objects, seed), next: 0, known }
            }
            Model::Table3(knobs) => {
                Source::Table3 { stream: Table3Stream::new(knobs, seed), delay: knobs.think_time }
            }
            Model::PolyMix4(knobs) => Source::PolyMix4 {
                stream: PolyMixStream::new(knobs, seed),
                servers: knobs.origins(),
            },
            Model::Trace(replay) => Source::Trace(ReplayStream::new(replay)),
        };
        Self { source }
    }

    /// Returns the next request. With PolyMix-4, the kinds of requests have the shares of its top
    /// phases (full load).
    pub fn next_request(&mut self) -> Request {
        self.next_request_with(&Factors::full(1.0))
    }

    /// Returns the next request. `factors` change how often each kind of request occurs. Only
    /// PolyMix-4 uses the factors.
    pub fn next_request_with(&mut self, factors: &Factors) -> Request {
        match &mut self.source {
            Source::Objects { objects, next, known } => {
                let object = objects.object_at(*next);
                *next += 1;
                let repeat = match known {
                    Known::None => false,
                    Known::All => true,
                    Known::Those(ids) => !ids.insert(object.id),
                };
                Request::plain(Draw { object, server: 0, is_repeat: repeat }, Duration::ZERO)
            }
            Source::Table3 { stream, delay } => Request::plain(stream.next(), *delay),
            Source::PolyMix4 { stream, servers } => {
                let Start { document, manner, repeat } = stream.next_start(factors);
                let server = document.server(*servers);
                Request { content: Content::Document(document), server, manner, repeat }
            }
            Source::Trace(stream) => Request::plain(stream.next(), Duration::ZERO),
        }
    }

    /// Begins a phase of PolyMix-4. Other streams have no phases.
    pub const fn begin_phase(&mut self) {
        if let Source::PolyMix4 { stream, .. } = &mut self.source {
            stream.begin_phase();
        }
    }

    /// Returns whether the set of objects that repeated requests choose from has reached its final
    /// size.
    pub fn is_frozen(&self) -> bool {
        match &self.source {
            Source::Objects { .. } | Source::Table3 { .. } | Source::Trace(_) => true,
            Source::PolyMix4 { stream, .. } => stream.is_frozen(),
        }
    }
}

impl Model {
    /// Number of servers.
    pub fn servers(&self) -> u32 {
        match self {
            Self::Objects(_) | Self::Trace(_) => 1,
            Self::Table3(Table3 { servers, .. }) => *servers,
            Self::PolyMix4(knobs) => PolyMix4::origins(knobs),
        }
    }

    /// Number of requests, or `None` for an endless stream.
    pub fn requests(&self) -> Option<u64> {
        match self {
            Self::Trace(replay) => Some(replay.requests()),
            Self::Objects(_) | Self::Table3(_) | Self::PolyMix4(_) => None,
        }
    }

    /// Returns the recorded time of request `number`, measured from the first request of the trace.
    /// Returns `None` without a trace.
    pub fn recorded(&self, number: u64) -> Option<Duration> {
        match self {
            Self::Trace(replay) => replay.time(number),
            Self::Objects(_) | Self::Table3(_) | Self::PolyMix4(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Objects;

    #[test]
    fn what_follows_a_page_is_asked_for_as_the_page_was_at_the_same_server() {
        let mut stream = RequestStream::new(&Workload::find("polymix-4").expect("known"), 1);
        let page = std::iter::repeat_with(|| stream.next_request())
            .find(|request| request.manner == Manner::SinceThen && request.embedded().count() > 1)
            .expect("one in a few");
        for image in page.embedded() {
            assert_eq!(
                (image.server, image.manner, image.repeat),
                (page.server, page.manner, page.repeat)
            );
            assert_eq!(image.embedded().count(), 0);
        }
        assert_eq!(Request { manner: Manner::Head, ..page }.embedded().count(), 0);
    }

    #[test]
    fn objects_that_nothing_warmed_up_are_repeats_from_their_second_time_on() {
        let repeats =
            |warm_up, popularity| {
                let workload = Workload::find("zipf").expect("known").with_objects(|objects| {
                    Objects { objects: 10, warm_up, popularity, ..objects }
                });
                let mut stream = RequestStream::new(&workload, 1);
                (0..20).map(|_| stream.next_request()).filter(Request::is_offered_hit).count()
            };
        assert_eq!(repeats(true, Popularity::InOrder), 20);
        assert_eq!(repeats(false, Popularity::InOrder), 10);
        assert_eq!(repeats(false, Popularity::AllNew), 0);
        assert!((10..20).contains(&repeats(false, Popularity::Uniform)));
    }

    #[test]
    fn every_workload_gives_the_same_paths_for_the_same_seed() {
        for workload in Workload::named() {
            let paths = |seed| {
                let mut stream = RequestStream::new(&workload, seed);
                (0..50).map(|_| stream.next_request().content.to_string()).collect::<Vec<_>>()
            };
            assert_eq!(paths(3), paths(3), "{}", workload.name);
        }
    }
}
