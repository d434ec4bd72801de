//! Lists the names of measures that a run may record. The command line uses the lists before a run,
//! to refuse a limit of `--fail-if` on a measure that the run never records.

use crate::Measure;
use std::collections::BTreeSet;

/// The names of the measures that a run may record for one subject (a proxy, scheme or engine)
/// under one workload. A name may have a placeholder: `errors_{cause}` stands for one measure per
/// cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurable {
    /// Name of the subject (a proxy, scheme or engine), or `None` if it is unknown before the run.
    pub subject: Option<String>,
    /// Workload of the measures, or `None` if they belong to no workload.
    pub workload: Option<String>,
    /// Names of measures, with placeholders in braces such as `{cause}`.
    pub names: Vec<String>,
    /// Name of each placeholder, without braces, and the values that it stands for.
    pub choices: Vec<(&'static str, Vec<String>)>,
}

impl Measurable {
    /// Lists measures of `subject`.
    pub fn of(subject: &str, names: &[&str]) -> Self {
        Self { subject: Some(subject.into()), ..Self::of_any(names) }
    }

    /// Lists measures that every subject (proxy, scheme or engine) may have.
    pub fn of_any(names: &[&str]) -> Self {
        Self::default().and(names)
    }

    /// Adds names of measures.
    pub fn and(mut self, names: &[&str]) -> Self {
        self.names.extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    /// Sets the values that the placeholder `{word}` stands for.
    pub fn choosing<T: Into<String>>(
        mut self,
        word: &'static str,
        among: impl IntoIterator<Item = T>,
    ) -> Self {
        self.choices.push((word, among.into_iter().map(Into::into).collect()));
        self
    }

    /// Sets the workload of the measures.
    pub fn under(self, workload: &str) -> Self {
        Self { workload: Some(workload.into()), ..self }
    }

    /// Returns all names. A name with a placeholder is returned once for each of its values.
    pub fn all(&self) -> BTreeSet<String> {
        self.names.iter().flat_map(|name| self.expand(name)).collect()
    }

    /// Returns whether the run may record a measure of this subject (proxy, scheme or engine),
    /// workload and name.
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
