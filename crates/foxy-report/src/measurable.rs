//! What may be measured of a subject, by name, as far as it is known before anything is. It says
//! nothing of values.

use crate::Measure;
use std::collections::BTreeSet;

/// The names that measures of one subject under one workload may have. `errors_{cause}` stands for
/// a name for each cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurable {
    /// The subject; none where it is not known beforehand what it is called.
    pub subject: Option<String>,
    /// The workload, where measures have one.
    pub workload: Option<String>,
    /// The names, with words in braces for what there is a choice of.
    pub names: Vec<String>,
    /// What stands for each word in braces.
    pub choices: Vec<(&'static str, Vec<String>)>,
}

impl Measurable {
    /// Of this subject.
    pub fn of(subject: &str, names: &[&str]) -> Self {
        Self { subject: Some(subject.into()), ..Self::of_any(names) }
    }

    /// Of whoever comes.
    pub fn of_any(names: &[&str]) -> Self {
        Self::default().and(names)
    }

    /// Also by these names.
    pub fn and(mut self, names: &[&str]) -> Self {
        self.names.extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    /// With these for a word in braces.
    pub fn choosing<T: Into<String>>(
        mut self,
        word: &'static str,
        among: impl IntoIterator<Item = T>,
    ) -> Self {
        self.choices.push((word, among.into_iter().map(Into::into).collect()));
        self
    }

    /// Under a workload.
    pub fn under(self, workload: &str) -> Self {
        Self { workload: Some(workload.into()), ..self }
    }

    /// Every name in full.
    pub fn all(&self) -> BTreeSet<String> {
        self.names.iter().flat_map(|name| self.expand(name)).collect()
    }

    /// Whether a measure was to be expected.
    pub fn covers(&self, measure: &Measure) -> bool {
        self.workload == measure.workload
            && self.subject.as_ref().is_none_or(|subject| *subject == measure.subject)
            && self.all().contains(&measure.name)
    }

    fn expand(&self, name: &str) -> Vec<String> {
        let braces = name.find('{').and_then(|open| Some((open, open + name[open..].find('}')?)));
        let Some((open, close)) = braces else { return vec![name.to_owned()] };
        let (before, word, after) = (&name[..open], &name[open + 1..close], &name[close + 1..]);
        let among =
            self.choices.iter().filter(|(known, _)| *known == word).flat_map(|(_, among)| among);
        among.flat_map(|one| self.expand(&format!("{before}{one}{after}"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_stand_for_each_choice() {
        let measurable = Measurable::of("a", &["errors", "{what}_to_{path}"])
            .choosing("what", ["mean", "median"])
            .choosing("path", ["b", "c"]);
        let all: Vec<String> = measurable.all().into_iter().collect();
        assert_eq!(all, ["errors", "mean_to_b", "mean_to_c", "median_to_b", "median_to_c"]);
        assert!(measurable.covers(&Measure::once("mean_to_c", "a", 0.0, "ms")));
        assert!(!measurable.covers(&Measure::once("mean_to_c", "b", 0.0, "ms")));
        assert!(Measurable::of("a", &["to_{path}"]).all().is_empty());
    }
}
