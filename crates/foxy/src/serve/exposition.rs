//! Prometheus' text format, version 0.0.4: families of samples with help and type. Knows no counter
//! by name.

use std::fmt::{Display, Write};

/// Whether a family only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// Starts at zero and only grows; its name ends in `_total`.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// A document that grows family by family.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// A family with one sample without labels.
    pub fn single(&mut self, name: &str, kind: FamilyKind, help: &str, value: impl Display) {
        self.family(name, kind, help, [(&[] as &[(&str, &str)], value)]);
    }

    /// A family and its samples, each with its labels. A family without samples is left out.
    pub fn family<'a, V: Display>(
        &mut self,
        name: &str,
        kind: FamilyKind,
        help: &str,
        samples: impl IntoIterator<Item = (&'a [(&'a str, &'a str)], V)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        let kind = match kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
        for (labels, value) in samples {
            self.line(format_args!("{name}{} {value}", show(labels)));
        }
    }

    /// The document.
    pub fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("a String takes all");
    }
}

fn show(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let pairs: Vec<_> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_carry_help_type_and_escaped_labels() {
        let mut exposition = Exposition::default();
        exposition.single("foxy_up", FamilyKind::Gauge, "Always\none.", 1);
        let labels: [(&str, &str); 1] = [("path", "a\"b\\c\nd")];
        exposition.family("foxy_x_total", FamilyKind::Counter, "Some.", [(&labels[..], 2.5)]);
        exposition.family(
            "foxy_none_total",
            FamilyKind::Counter,
            "None.",
            [] as [(&[(&str, &str)], u64); 0],
        );
        assert_eq!(
            exposition.finish(),
            "# HELP foxy_up Always\\none.\n# TYPE foxy_up gauge\nfoxy_up 1\n\
             # HELP foxy_x_total Some.\n# TYPE foxy_x_total counter\nfoxy_x_total{path=\"a\\\"b\\\\c\\nd\"} 2.5\n"
        );
    }
}
