//! Builds a trace from parsed log lines. Replaces the names of clients, URLs and origin servers by
//! numbers, and sorts the requests by time.

use super::skip::{Answer, Entry, Skip, Verb};
use super::{Get, Other, Trace};
use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// A trace under construction.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    gets: Vec<(i64, Get)>,
    clients: Interner,
    urls: Interner,
    hosts: Interner,
    sites: Vec<u32>,
    last_sizes: Vec<Option<u64>>,
    /// Requests with methods other than GET, or `None` if the builder collects only GET requests.
    others: Option<Vec<(i64, Other)>>,
}

impl Builder {
    /// Makes a builder that collects requests with all methods. The builder of `default` collects
    /// only GET requests.
    pub fn of_all_methods() -> Self {
        Self { others: Some(Vec::new()), ..Self::default() }
    }

    /// Adds a log line. Drops the URL's fragment, because browsers log it but never send it (RFC
    /// 3986 §3.5). Returns an error for a 304 whose object's size no earlier line gave, and for a
    /// method that the builder does not collect. Also returns an error after 2^32 different clients
    /// or URLs.
    pub fn add(&mut self, entry: Entry<'_>) -> Result<(), Skip> {
        let entry = Entry { url: without_fragment(entry.url), ..entry };
        let size = match entry.answer {
            Answer::Whole(size) => size,
            Answer::Other(verb, size) => return self.add_other(entry, verb, size),
            Answer::NotModified => {
                let url = self.urls.find(entry.url).ok_or(Skip::SizeNotKnown)?;
                self.last_sizes[url as usize].ok_or(Skip::SizeNotKnown)?
            }
        };
        let (client, url) = self.numbers(entry)?;
        self.last_sizes[url as usize] = Some(size);
        self.gets.push((entry.time, Get { time: 0, client, url, size }));
        Ok(())
    }

    /// Adds a request with a method other than GET. The request receives the size of the last GET
    /// of its URL. Without such a GET, the request keeps its own size, and a HEAD has 0 bytes.
    fn add_other(&mut self, entry: Entry<'_>, verb: Verb, size: u64) -> Result<(), Skip> {
        if self.others.is_none() {
            return Err(Skip::NotGet);
        }
        let (client, url) = self.numbers(entry)?;
        let size =
            self.last_sizes[url as usize].unwrap_or(if verb == Verb::Head { 0 } else { size });
        let other = Other { verb, get: Get { time: 0, client, url, size } };
        self.others.as_mut().expect("looked at above").push((entry.time, other));
        Ok(())
    }

    /// Returns the numbers that replace the names of client and URL.
    fn numbers(&mut self, entry: Entry<'_>) -> Result<(u32, u32), Skip> {
        let (client, _) = self.clients.number(entry.client).ok_or(Skip::TooManyNames)?;
        let (url, new) = self.urls.number(entry.url).ok_or(Skip::TooManyNames)?;
        if new {
            let site = self.hosts.number(&host(entry.url).to_ascii_lowercase());
            let (site, _) = site.expect("there are no more hosts than URLs");
            self.sites.push(site);
            self.last_sizes.push(None);
        }
        Ok((client, url))
    }

    /// Number of GET requests.
    pub fn len(&self) -> usize {
        self.gets.len()
    }

    /// Number of requests with methods other than GET.
    pub fn others(&self) -> usize {
        self.others.as_ref().map_or(0, Vec::len)
    }

    /// Returns whether there are no GET requests.
    pub fn is_empty(&self) -> bool {
        self.gets.is_empty()
    }

    /// Returns the trace in order of time. Requests of equal time keep their order.
    pub fn finish(mut self) -> Trace {
        let mut others = self.others.unwrap_or_default();
        self.gets.sort_by_key(|(time, _)| *time);
        others.sort_by_key(|(time, _)| *time);
        let firsts =
            [self.gets.first().map(|(time, _)| *time), others.first().map(|(time, _)| *time)];
        let first = firsts.into_iter().flatten().min().unwrap_or(0);
        let since = |time: i64| time.abs_diff(first);
        let others = others.into_iter().map(|(time, other)| {
            let get = Get { time: since(time), ..other.get };
            Other { get, ..other }
        });
        let others = others.collect();
        let gets =
            self.gets.into_iter().map(|(time, get)| Get { time: since(time), ..get }).collect();
        Trace {
            gets,
            others,
            start: first,
            sites: self.sites,
            clients: count(&self.clients),
            site_count: count(&self.hosts),
            names: Names::Texts(self.urls.texts),
        }
    }
}

fn count(interner: &Interner) -> u32 {
    u32::try_from(interner.texts.len()).unwrap_or(u32::MAX)
}

fn without_fragment(url: &str) -> &str {
    url.split_once('#').map_or(url, |(url, _)| url)
}

/// Returns host and port of an absolute URL or of a tunnel (`host:port`). Returns an empty text for
/// a path.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let authority = &rest[..end];
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The texts of a trace's URLs.
#[derive(Clone, Debug, Default)]
pub enum Names {
    /// Synthetic URLs. The number of the URL and the number of its origin server determine the
    /// text.
    #[default]
    Numbered,
    /// Texts from a log.
    Texts(Texts),
}

/// Many texts, stored one after another in one string and numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    joined: String,
    ends: Vec<usize>,
}

impl Texts {
    /// Returns the text with this number. Panics if the number is unknown.
    pub fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.joined[start..self.ends[number]]
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn push(&mut self, text: &str) {
        self.joined.push_str(text);
        self.ends.push(self.joined.len());
    }
}

/// Gives each different text a number, in order of first occurrence.
#[derive(Clone, Debug, Default)]
struct Interner {
    texts: Texts,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl Interner {
    fn find(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.numbers.find(hash, |&number| self.texts.get(number) == text).copied()
    }

    /// Returns the number of `text`, and whether the text is new. Returns `None` after 2^32 texts.
    fn number(&mut self, text: &str) -> Option<(u32, bool)> {
        let hash = self.hasher.hash_one(text);
        if let Some(&number) = self.numbers.find(hash, |&number| self.texts.get(number) == text) {
            return Some((number, false));
        }
        let number = u32::try_from(self.texts.len()).ok()?;
        self.texts.push(text);
        self.numbers
            .insert_unique(hash, number, |&number| self.hasher.hash_one(self.texts.get(number)));
        Some((number, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_server_is_what_stands_before_the_path() {
        let cases = [
            ("http://a.test/b/c", "a.test"),
            ("http://user:word@a.test:8080?q", "a.test:8080"),
            ("https://a.test", "a.test"),
            ("/only/a/path", ""),
            ("a.test:443", "a.test:443"),
            ("", ""),
        ];
        for (url, expected) in cases {
            assert_eq!(host(url), expected, "{url}");
        }
    }

    fn entry<'a>(time: i64, client: &'a str, url: &'a str, answer: Answer) -> Entry<'a> {
        Entry { time, client, url, answer }
    }

    #[test]
    fn gets_come_in_the_order_of_their_times_counted_from_the_first() {
        let mut builder = Builder::default();
        let gets =
            [(500, "c1", "http://a/1"), (200, "c2", "http://B/1"), (500, "c1", "http://b/2")];
        for (time, client, url) in gets {
            assert_eq!(builder.add(entry(time, client, url, Answer::Whole(10))), Ok(()));
        }
        let trace = builder.finish();
        let seen: Vec<_> = trace.gets.iter().map(|get| (get.time, get.client, get.url)).collect();
        assert_eq!(seen, [(0, 1, 1), (300, 0, 0), (300, 0, 2)]);
        assert_eq!((trace.start, trace.urls(), trace.clients, trace.site_count), (200, 3, 2, 2));
        assert_eq!(trace.sites, [0, 1, 1]);
        assert_eq!(trace.url_text(1), "http://B/1");
    }

    #[test]
    fn other_methods_take_the_last_object_of_their_url_and_are_left_out_unless_wanted() {
        let post = |time, url| entry(time, "c", url, Answer::Other(Verb::Post, 5));
        assert_eq!(Builder::default().add(post(0, "u")), Err(Skip::NotGet));
        let mut builder = Builder::of_all_methods();
        for line in [
            post(100, "u"),
            entry(200, "c", "u", Answer::Whole(70)),
            post(300, "u"),
            entry(300, "d", "v", Answer::Other(Verb::Head, 260)),
        ] {
            assert_eq!(builder.add(line), Ok(()));
        }
        assert_eq!(builder.add(entry(400, "c", "v", Answer::NotModified)), Err(Skip::SizeNotKnown));
        assert_eq!((builder.len(), builder.others()), (1, 3));
        let trace = builder.finish();
        assert_eq!(
            (trace.start, trace.gets[0].time, trace.urls(), trace.clients),
            (100, 100, 2, 2)
        );
        let seen: Vec<_> = trace
            .others
            .iter()
            .map(|other| (other.verb, other.get.time, other.get.url, other.get.size))
            .collect();
        let expected = [(Verb::Post, 0, 0, 5), (Verb::Post, 200, 0, 70), (Verb::Head, 200, 1, 0)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_only_the_client_knows_of_a_url_is_left_away() {
        let mut builder = Builder::default();
        for url in [
            "http://a.test/page#one",
            "http://a.test/page",
            "http://a.test#two",
            "http://a.test/page#two#more",
        ] {
            assert_eq!(builder.add(entry(0, "c", url, Answer::Whole(7))), Ok(()));
        }
        let trace = builder.finish();
        assert_eq!(trace.gets.iter().map(|get| get.url).collect::<Vec<_>>(), [0, 0, 1, 0]);
        assert_eq!([0, 1].map(|url| trace.url_text(url)), ["http://a.test/page", "http://a.test"]);
        assert_eq!(trace.site_count, 1);
    }

    #[test]
    fn an_unchanged_object_is_as_large_as_before() {
        let mut builder = Builder::default();
        assert_eq!(builder.add(entry(0, "c", "u", Answer::NotModified)), Err(Skip::SizeNotKnown));
        assert_eq!(builder.add(entry(1, "c", "u", Answer::Whole(7))), Ok(()));
        assert_eq!(builder.add(entry(2, "c", "u", Answer::NotModified)), Ok(()));
        let sizes: Vec<u64> = builder.finish().gets.iter().map(|get| get.size).collect();
        assert_eq!(sizes, [7, 7]);
    }

    #[test]
    fn the_widest_possible_times_do_not_overflow() {
        let mut builder = Builder::default();
        for time in [i64::MIN, i64::MAX] {
            assert_eq!(builder.add(entry(time, "c", "u", Answer::Whole(1))), Ok(()));
        }
        assert_eq!(builder.finish().gets[1].time, u64::MAX);
    }

    #[test]
    fn a_text_keeps_the_number_it_was_first_given() {
        let mut interner = Interner::default();
        let numbers: Vec<_> =
            ["a", "", "bb", "a", ""].iter().map(|text| interner.number(text)).collect();
        assert_eq!(
            numbers,
            [Some((0, true)), Some((1, true)), Some((2, true)), Some((0, false)), Some((1, false))]
        );
        let texts = interner.texts;
        assert_eq!((texts.get(0), texts.get(1), texts.get(2)), ("a", "", "bb"));
    }
}
