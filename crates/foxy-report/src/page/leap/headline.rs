//! Summarises a run of LEAP (a comparison of proxies that all receive the same requests). The
//! summary names the fastest proxy and the proxy with the most wrong answers, by how much, and how
//! sure.

use crate::number::{readable, significant};
use crate::record::{Measure, Record};
use crate::table::Table;

/// Paths without a cache. Proxies are compared with them, but they cannot be the fastest proxy.
const REFERENCES: [&str; 2] = ["direct", "passthrough"];
/// Verdicts on complete but wrong answers.
const WRONG: [&str; 4] = ["status_code_mismatch", "header_mismatch", "body_mismatch", "stale"];
/// Verdicts on requests without a complete answer.
const UNANSWERED: [&str; 2] = ["incomplete", "timeout"];
/// Two-sided 95 % point of the normal distribution.
const NORMAL: f64 = 1.96;

/// The summary of a run of LEAP.
#[derive(Clone, Debug)]
pub struct Headline {
    /// The main results.
    pub sentences: Vec<String>,
    /// A row for each path (proxy or origin): its median time, its distance from the fastest proxy,
    /// and its wrong answers.
    pub table: Table,
}

impl Headline {
    /// Returns the headline as text.
    pub fn text(&self) -> String {
        format!("{}\n\n{}", self.sentences.join("\n"), self.table.render())
    }
}

/// Returns the headline of the records, if they have verdicts on at least two proxies.
pub fn headline(records: &[Record]) -> Option<Headline> {
    let measures = records.iter().filter_map(|record| match record {
        Record::Measure(measure) if measure.workload.is_none() => Some(measure),
        _ => None,
    });
    let run = Run(measures.collect());
    let mut paths: Vec<Path> = run.paths();
    paths.sort_by(|a, b| a.median.total_cmp(&b.median));
    let proxies: Vec<&Path> = paths.iter().filter(|path| path.is_proxy()).collect();
    let (fastest, others) = proxies.split_first()?;
    let mut sentences = run.speed(fastest, others)?;
    sentences.extend(wrong_answers(&proxies));
    sentences.extend(unanswered(&proxies));
    Some(Headline { sentences, table: run.table(&paths, fastest) })
}

/// The measures of a run.
struct Run<'a>(Vec<&'a Measure>);

struct Path<'a> {
    name: &'a str,
    /// Median response time in microseconds.
    median: f64,
    judged: f64,
    wrong: f64,
    unanswered: f64,
    /// The numbers of wrong answers by verdict.
    verdicts: Vec<(&'static str, f64)>,
}

impl Path<'_> {
    fn is_proxy(&self) -> bool {
        !REFERENCES.contains(&self.name)
    }
}

/// The difference between the response times of two paths for equal requests, in microseconds.
struct Difference {
    value: f64,
    low: f64,
    high: f64,
    noise: Option<f64>,
}

impl Difference {
    fn is_sure(&self) -> bool {
        self.low > 0.0 && self.noise.is_none_or(|noise| self.value > noise)
    }

    fn certainty(&self) -> &'static str {
        match self.noise {
            _ if self.low <= 0.0 => "no: may be zero",
            Some(noise) if self.value <= noise => "no: within the noise",
            Some(_) => "yes",
            None => "yes, but noise unknown",
        }
    }

    fn words(&self) -> String {
        let noise = match self.noise {
            Some(noise) => format!("; noise {}", milliseconds(noise)),
            None => "; noise unknown".into(),
        };
        let [value, low, high] = [self.value, self.low, self.high].map(milliseconds);
        format!("{value} ms (95 %: {low} to {high} ms{noise})")
    }
}

fn milliseconds(microseconds: f64) -> String {
    significant(microseconds / 1000.0, 3)
}

impl<'a> Run<'a> {
    fn value(&self, name: &str, subject: &str) -> Option<&'a Measure> {
        self.0.iter().copied().find(|measure| measure.name == name && measure.subject == subject)
    }

    fn paths(&self) -> Vec<Path<'a>> {
        let judged = self.0.iter().copied().filter(|measure| measure.name == "verdict_ok");
        let path = |ok: &'a Measure| {
            let name = ok.subject.as_str();
            let count = |verdict: &str| {
                self.value(&format!("verdict_{verdict}"), name).map_or(0.0, |found| found.value)
            };
            let verdicts: Vec<(&str, f64)> =
                WRONG.iter().map(|verdict| (*verdict, count(verdict))).collect();
            let wrong = verdicts.iter().map(|(_, count)| count).sum::<f64>();
            let unanswered = UNANSWERED.iter().map(|verdict| count(verdict)).sum::<f64>();
            let judged = ok.value + wrong + unanswered;
            let median = self.value("latency_p50_us", name)?.value;
            Some(Path { name, median, judged, wrong, unanswered, verdicts })
        };
        judged.filter_map(path).collect()
    }

    /// Returns the median of the paired differences: `slower` less `faster`.
    fn difference(&self, slower: &str, faster: &str) -> Option<Difference> {
        let noise = self.value("noise_floor_us", "leap").map(|noise| noise.value);
        let name = |to: &str| format!("latency_difference_p50_us_to_{to}");
        if let Some(found) = self.value(&name(faster), slower) {
            return Some(Difference {
                value: found.value,
                low: found.low,
                high: found.high,
                noise,
            });
        }
        let found = self.value(&name(slower), faster)?;
        Some(Difference { value: -found.value, low: -found.high, high: -found.low, noise })
    }

    fn speed(&self, fastest: &Path, others: &[&Path]) -> Option<Vec<String>> {
        let differences: Vec<(&str, Difference)> = others
            .iter()
            .filter_map(|other| Some((other.name, self.difference(other.name, fastest.name)?)))
            .collect();
        let sure = || differences.iter().filter(|(_, difference)| difference.is_sure());
        let ties: Vec<&str> = differences
            .iter()
            .filter(|(_, difference)| !difference.is_sure())
            .map(|(name, _)| *name)
            .collect();
        let median = milliseconds(fastest.median);
        let mut sentences = vec![if ties.is_empty() {
            format!("Fastest: {}, with a median of {median} ms.", fastest.name)
        } else {
            let ties = ties.join(", ");
            format!(
                "Fastest: {}, with a median of {median} ms; not surely slower: {ties}.",
                fastest.name
            )
        }];
        let by = |word: &str, (name, difference): &(&str, Difference)| {
            format!("{word}: {name}, later by {} in the median.", difference.words())
        };
        let order =
            |a: &&(&str, Difference), b: &&(&str, Difference)| a.1.value.total_cmp(&b.1.value);
        let next = sure().min_by(order);
        let last = sure().max_by(order);
        sentences.extend(next.map(|found| by("Next", found)));
        if sure().count() > 1 {
            sentences.extend(last.map(|found| by("Slowest", found)));
        }
        (!differences.is_empty()).then_some(sentences)
    }

    fn table(&self, paths: &[Path], fastest: &Path) -> Table {
        let later = format!("later than {}, ms", fastest.name);
        let mut table = Table::new(&[
            "path",
            "median, ms",
            &later,
            "95 %",
            "sure",
            "wrong answers",
            "of",
            "share (95 %)",
            "unanswered",
        ]);
        for path in paths {
            let difference = self.difference(path.name, fastest.name);
            let [value, range, sure] = match difference {
                Some(found) if path.name != fastest.name => [
                    milliseconds(found.value),
                    format!("{} … {}", milliseconds(found.low), milliseconds(found.high)),
                    if path.is_proxy() { found.certainty() } else { "reference" }.into(),
                ],
                _ => ["–".into(), "–".into(), "–".into()],
            };
            let mark = if path.wrong > 0.0 { " ✗" } else { "" };
            table.row(&[
                path.name.into(),
                milliseconds(path.median),
                value,
                range,
                sure,
                format!("{}{mark}", readable(path.wrong)),
                readable(path.judged),
                share(path.wrong, path.judged),
                readable(path.unanswered),
            ]);
        }
        table
    }
}

fn wrong_answers(proxies: &[&Path]) -> Option<String> {
    let worst = proxies.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    if worst.wrong == 0.0 {
        let least = proxies.iter().map(|path| path.judged).fold(f64::INFINITY, f64::min);
        let rare = readable((least / 3.0).floor());
        return Some(format!(
            "No proxy gave a wrong answer: with 95 % certainty fewer than 1 in {rare} answers."
        ));
    }
    let found = worst.verdicts.iter().filter(|(_, count)| *count > 0.0);
    let found: Vec<String> =
        found.map(|(verdict, count)| format!("{verdict} {}", readable(*count))).collect();
    Some(format!(
        "Most wrong answers: {}, {} of {}, {}: {}.",
        worst.name,
        readable(worst.wrong),
        readable(worst.judged),
        share(worst.wrong, worst.judged),
        found.join(", ")
    ))
}

fn unanswered(proxies: &[&Path]) -> Option<String> {
    let most = proxies.iter().max_by(|a, b| a.unanswered.total_cmp(&b.unanswered))?;
    let count = readable(most.unanswered);
    (most.unanswered > 0.0)
        .then(|| format!("Most requests without a complete answer: {}, {count}.", most.name))
}

fn rate(path: &Path) -> f64 {
    path.wrong / path.judged.max(1.0)
}

/// Formats a share in percent with its 95 % interval (by Wilson's method). A share of 0 gets only
/// an upper limit.
fn share(part: f64, whole: f64) -> String {
    if whole == 0.0 {
        return "–".into();
    }
    if part == 0.0 {
        return format!("0 % (below {} %)", significant(300.0 / whole, 2));
    }
    let (share, square) = (part / whole, NORMAL * NORMAL);
    let middle = (share + square / (2.0 * whole)) / (1.0 + square / whole);
    let half = NORMAL / (1.0 + square / whole)
        * (share * (1.0 - share) / whole + square / (4.0 * whole * whole)).sqrt();
    let percent = |value: f64| significant(value * 100.0, 2);
    format!("{} % ({}–{} %)", percent(share), percent(middle - half), percent(middle + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(measures: &[(&str, &str, f64, f64, f64)]) -> Vec<Record> {
        let record = |&(name, subject, value, low, high): &(&str, &str, f64, f64, f64)| {
            Record::Measure(Measure { low, high, ..Measure::once(name, subject, value, "") })
        };
        measures.iter().map(record).collect()
    }

    fn once(
        name: &'static str,
        subject: &'static str,
        value: f64,
    ) -> (&'static str, &'static str, f64, f64, f64) {
        (name, subject, value, value, value)
    }

    fn run(stale: f64) -> Headline {
        let measures = [
            once("verdict_ok", "direct", 1000.0),
            once("verdict_ok", "squid", 1000.0 - stale),
            once("verdict_stale", "squid", stale),
            once("verdict_ok", "foxy", 1000.0),
            once("verdict_ok", "nginx", 1000.0),
            once("latency_p50_us", "direct", 500.0),
            once("latency_p50_us", "squid", 3000.0),
            once("latency_p50_us", "foxy", 1000.0),
            once("latency_p50_us", "nginx", 1020.0),
            once("noise_floor_us", "leap", 40.0),
            ("latency_difference_p50_us_to_foxy", "squid", 1900.0, 1800.0, 2100.0),
            ("latency_difference_p50_us_to_nginx", "foxy", -20.0, -30.0, -10.0),
        ];
        headline(&records(&measures)).expect("a headline")
    }

    #[test]
    fn the_headline_names_the_fastest_and_the_proxy_that_lies() {
        assert_eq!(
            run(40.0).sentences,
            [
                "Fastest: foxy, with a median of 1 ms; not surely slower: nginx.",
                "Next: squid, later by 1.9 ms (95 %: 1.8 to 2.1 ms; noise 0.04) in the median.",
                "Most wrong answers: squid, 40 of 1,000, 4 % (3–5.4 %): stale 40.",
            ]
        );
        let none = "No proxy gave a wrong answer: with 95 % certainty fewer than 1 in 333 answers.";
        assert_eq!(run(0.0).sentences.last().map(String::as_str), Some(none));
    }

    #[test]
    fn every_path_has_a_row_in_the_order_of_its_median() {
        let text = run(40.0).table.render();
        let names: Vec<&str> =
            text.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(names, ["direct", "foxy", "nginx", "squid"]);
        assert!(text.contains("no: within the noise") && text.contains("40 ✗"), "{text}");
    }
}
