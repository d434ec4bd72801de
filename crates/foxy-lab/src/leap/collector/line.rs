//! A line of the Collector's log. The format is Squid's native access.log, as in Figure 4 of the
//! LEAP paper (paper 002 in docs/figures.md).

use crate::named::named;
use foxy_base::WallTime;
use foxy_http::Method;
use std::fmt;
use std::time::Duration;

named! {
    /// The origin or cache from which the Collector (common parent proxy) answered a request. The
    /// names are the result codes of Squid's log.
    pub enum Source {
        /// The answer came from the origin, through a new fetch for this request.
        Origin = "TCP_MISS",
        /// The answer came from the Collector's storage, after the origin confirmed it.
        Confirmed = "TCP_REFRESH_HIT",
        /// The answer came from the origin, which replaced the stored answer.
        Replaced = "TCP_REFRESH_MISS",
        /// The answer came from a fetch that an earlier request had started, and that was still
        /// running.
        Joined = "TCP_CF_HIT",
        /// The answer came from the Collector's memory.
        Memory = "TCP_MEM_HIT",
        /// The answer came from the spool file, which holds bodies beyond the memory limit.
        File = "TCP_HIT",
        /// The answer is a 304 of the Collector itself, because the proxy's own copy is current.
        Unchanged = "TCP_IMS_HIT",
        /// The answer is a stored failure: an earlier exchange with the origin failed.
        Failure = "TCP_NEGATIVE_HIT",
        /// The answer has no source, because the Collector refused the request.
        Refused = "TCP_DENIED",
    }
}

impl Source {
    /// Whether the answer required a request to the origin.
    pub const fn is_fetch(self) -> bool {
        matches!(self, Self::Origin | Self::Confirmed | Self::Replaced)
    }
}

/// A log line about one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorLine {
    /// The time at which the answer ended.
    pub at: WallTime,
    /// The duration of the request. The log shows it in milliseconds.
    pub elapsed: Duration,
    /// The proxy's name, or its address if it has no name.
    pub proxy: String,
    /// The source of the answer.
    pub source: Source,
    /// Whether the proxy received only a part of the answer.
    pub aborted: bool,
    /// The status code of the answer.
    pub status: u16,
    /// The number of bytes sent, including the head.
    pub size: u64,
    /// The method of the request.
    pub method: Method,
    /// The URL of the request, or `-` if there is no URL.
    pub url: String,
    /// The address of the origin that received the request, if any.
    pub origin: Option<String>,
    /// The media type of the answer's body.
    pub media: Option<String>,
}

impl fmt::Display for CollectorLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.at.0 / 1000, self.at.0 % 1000);
        let aborted = if self.aborted { "_ABORTED" } else { "" };
        write!(f, "{seconds}.{millis:03} {} {} ", self.elapsed.as_millis(), self.proxy)?;
        write!(f, "{}{aborted}/{:03} {} ", self.source.name(), self.status, self.size)?;
        write!(f, "{} {} - ", self.method, word(&self.url))?;
        match &self.origin {
            Some(origin) => write!(f, "DIRECT/{origin} ")?,
            None => f.write_str("NONE/- ")?,
        }
        f.write_str(&word(self.media.as_deref().unwrap_or("-")))
    }
}

fn word(text: &str) -> String {
    let end = text.find([';', ' ', '\t']).filter(|_| !text.contains("://")).unwrap_or(text.len());
    let clean: String =
        text[..end].chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect();
    if clean.is_empty() { "-".into() } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_workload::trace::{Format, read};

    const SAMPLES: [&str; 4] = [
        "1083714572.228 394 192.168.0.2 TCP_MISS/200 3108 GET \
         http://www.pinkforfree.com/images/default/button_members_off.jpg - DIRECT/208.236.11.57 \
         image/jpeg",
        "1083714577.243 406 192.168.0.201 TCP_MEM_HIT/200 3112 GET \
         http://www.pinkforfree.com/images/default/button_members_off.jpg - NONE/- image/jpeg",
        "1083714640.398 416 192.168.0.2 TCP_MISS/200 11325 GET http://media2.travelzoo.com/msn/ - \
         DIRECT/64.56.194.107 text/html",
        "1083714645.404 413 192.168.0.201 TCP_HIT/200 11329 GET http://media2.travelzoo.com/msn/ - \
         NONE/- text/html",
    ];

    fn sample(number: usize) -> CollectorLine {
        let (image, page) = (
            "http://www.pinkforfree.com/images/default/button_members_off.jpg",
            "http://media2.travelzoo.com/msn/",
        );
        let (at, elapsed, proxy, source, size, url, origin, media) = [
            (
                1_083_714_572_228,
                394,
                "192.168.0.2",
                Source::Origin,
                3108,
                image,
                Some("208.236.11.57"),
                "image/jpeg",
            ),
            (
                1_083_714_577_243,
                406,
                "192.168.0.201",
                Source::Memory,
                3112,
                image,
                None,
                "image/jpeg",
            ),
            (
                1_083_714_640_398,
                416,
                "192.168.0.2",
                Source::Origin,
                11_325,
                page,
                Some("64.56.194.107"),
                "text/html",
            ),
            (
                1_083_714_645_404,
                413,
                "192.168.0.201",
                Source::File,
                11_329,
                page,
                None,
                "text/html; charset=x",
            ),
        ][number];
        CollectorLine {
            at: WallTime(at),
            elapsed: Duration::from_millis(elapsed),
            proxy: proxy.into(),
            source,
            aborted: false,
            status: 200,
            size,
            method: Method::Get,
            url: url.into(),
            origin: origin.map(str::to_owned),
            media: Some(media.into()),
        }
    }

    fn gets(text: &str) -> (usize, u64) {
        let (trace, report) =
            read(text.as_bytes(), Some(Format::Squid), &mut |_| {}).expect("a log");
        (trace.gets.len(), report.lines - trace.gets.len() as u64)
    }

    #[test]
    fn the_papers_sample_lines_are_what_is_written_and_the_trace_reader_takes_them() {
        let written: Vec<String> = (0..4).map(|number| sample(number).to_string()).collect();
        assert_eq!(written, SAMPLES);
        assert_eq!(gets(&format!("{}\n", SAMPLES.join("\n"))), (4, 0));
    }

    #[test]
    fn every_source_reads_back_and_what_was_broken_off_is_known_as_that() {
        for source in Source::ALL {
            assert_eq!(Source::ALL[source as usize], source);
            let line = CollectorLine { source, ..sample(0) };
            assert_eq!(gets(&format!("{line}\n")), (1, 0), "{line}");
            let line = CollectorLine { aborted: true, ..line };
            assert_eq!(gets(&format!("{}\n{line}\n", SAMPLES[0])), (1, 1), "{line}");
        }
        let bare = CollectorLine {
            url: String::new(),
            media: Some(String::new()),
            status: 0,
            ..sample(0)
        };
        assert!(
            bare.to_string().ends_with("TCP_MISS/000 3108 GET - - DIRECT/208.236.11.57 -"),
            "{bare}"
        );
    }
}
