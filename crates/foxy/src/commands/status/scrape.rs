//! Reads the page `/metrics` of a running foxy.

use crate::commands::quantile;
use std::collections::BTreeSet;

type Labels = Vec<(String, String)>;

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: Labels,
    value: f64,
}

impl Sample {
    /// Reads a line such as `foxy_x_total{a="b"} 1`. Returns `None` if the line is a comment or
    /// malformed.
    fn read(line: &str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let value = value.parse().ok()?;
        Some(Self { name: name.to_owned(), labels: labels_of(labels.strip_suffix('}')?), value })
    }

    fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        let has = |(label, value): &(&str, &str)| self.label(label) == Some(value);
        self.name == name && labels.iter().all(has)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

fn labels_of(text: &str) -> Labels {
    let (mut labels, mut rest) = (Vec::new(), text);
    while let Some((name, quoted)) = rest.split_once("=\"") {
        let (mut value, mut letters) = (String::new(), quoted.chars());
        while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
            value.push(match letter {
                '\\' => letters.next().map_or('\\', |it| if it == 'n' { '\n' } else { it }),
                letter => letter,
            });
        }
        labels.push((name.trim_start_matches(',').to_owned(), value));
        rest = letters.as_str();
    }
    labels
}

/// The metrics of a running foxy at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Scrape {
    samples: Vec<Sample>,
}

impl Scrape {
    pub fn read(page: &str) -> Self {
        Self { samples: page.lines().filter_map(Sample::read).collect() }
    }

    /// Returns the sum of the samples with this name and these labels.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let found = self.samples.iter().filter(|sample| sample.has(name, labels));
        // The sum of nothing is -0.
        found.map(|sample| sample.value).sum::<f64>() + 0.0
    }

    /// Returns the values of a label in the samples with this name.
    pub fn labels(&self, name: &str, label: &str) -> BTreeSet<String> {
        let found = self.samples.iter().filter(|sample| sample.name == name);
        found.filter_map(|sample| sample.label(label).map(ToOwned::to_owned)).collect()
    }

    /// Returns the growth of each value since an earlier moment.
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |sample: &Sample| {
            let same = |other: &&Sample| other.name == sample.name && other.labels == sample.labels;
            earlier.samples.iter().find(same).map_or(0.0, |other| other.value)
        };
        let growth =
            |sample: &Sample| Sample { value: sample.value - before(sample), ..sample.clone() };
        Self { samples: self.samples.iter().map(growth).collect() }
    }

    /// Returns a quantile of a histogram in seconds: about the fraction `share` of all values are
    /// at most this value. Returns `None` if the histogram is empty.
    pub fn quantile(&self, histogram: &str, labels: &[(&str, &str)], share: f64) -> Option<f64> {
        let name = format!("{histogram}_bucket");
        let buckets = self.samples.iter().filter(|sample| sample.has(&name, labels));
        let end = |sample: &Sample| sample.label("le").and_then(|end| end.parse::<f64>().ok());
        let buckets: Vec<_> =
            buckets.filter_map(|sample| Some((end(sample)?, sample.value))).collect();
        let found = quantile::of(&buckets, share)?;
        // At least the fraction `1 - share` of all values, and at least one value, is as large as
        // the quantile. So their sum bounds the quantile, also within a wide bucket.
        let larger = (buckets.last()?.1 * (1.0 - share)).max(1.0);
        let sum = self.sum(&format!("{histogram}_sum"), labels);
        Some(if sum > 0.0 { found.min(sum / larger) } else { found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP x_total Says.\n# TYPE x_total counter\nx_total{a=\"b\\\"\\\\,c\",\
                        d=\"e\"} 3\nx_total{a=\"f\",d=\"e\"} 4\ny 1.5\n";

    #[test]
    fn a_quantile_is_at_most_the_sum_of_the_values_above() {
        let page = "t_bucket{le=\"0.004\"} 1\nt_bucket{le=\"+Inf\"} 1\nt_sum 0.0025\n";
        assert_eq!(Scrape::read(page).quantile("t", &[], 0.99), Some(0.0025));
        let none = Scrape::read(page).sum("absent", &[]);
        assert!(none.is_sign_positive(), "{none}");
    }

    #[test]
    fn samples_are_summed_by_their_labels() {
        let scrape = Scrape::read(PAGE);
        assert_eq!(scrape.sum("x_total", &[("d", "e")]), 7.0);
        assert_eq!(scrape.sum("x_total", &[("a", "b\"\\,c")]), 3.0);
        assert_eq!((scrape.sum("y", &[]), scrape.sum("z", &[])), (1.5, 0.0));
        assert!(scrape.labels("x_total", "a").iter().eq(["b\"\\,c", "f"]));
        let later = Scrape::read("x_total{a=\"f\",d=\"e\"} 6\nx_total{a=\"new\"} 1\n");
        assert_eq!(later.since(&scrape).sum("x_total", &[]), 3.0);
    }

    #[test]
    fn a_quantile_comes_from_the_buckets_of_its_histogram() {
        let scrape = Scrape::read(
            "h_bucket{le=\"0.1\"} 0\nh_bucket{le=\"0.2\"} 50\nh_bucket{le=\"+Inf\"} 50\n",
        );
        assert_eq!(scrape.quantile("h", &[], 1.0), Some(0.2));
        assert_eq!(scrape.quantile("g", &[], 0.5), None);
    }
}
