//! Why what came on a path has no verdict: the reasons that are counted, and named in records.

/// Why an answer has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// The origin gave no whole answer, or no majority of addresses agrees.
    NoReference,
    /// Both the path and the origin failed.
    OriginFailed,
    /// The origin answered differently when asked again.
    OriginVaries,
    /// Another proxy has the same answer, which the origin may have given earlier.
    SeenElsewhere,
    /// An unsafe method: each copy was a separate request.
    NotRepeated,
    /// A cache may answer differently: condition, range or `only-if-cached`.
    MayDiffer,
}

impl Unjudged {
    /// All reasons, in the order of the report's counts.
    pub const ALL: [Self; 6] = [
        Self::NoReference,
        Self::OriginFailed,
        Self::OriginVaries,
        Self::SeenElsewhere,
        Self::NotRepeated,
        Self::MayDiffer,
    ];

    /// Name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoReference => "no_reference",
            Self::OriginFailed => "origin_failed",
            Self::OriginVaries => "origin_varies",
            Self::SeenElsewhere => "seen_elsewhere",
            Self::NotRepeated => "not_repeated",
            Self::MayDiffer => "may_differ",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_place_and_a_name_of_its_own() {
        assert!(Unjudged::ALL.iter().enumerate().all(|(at, &reason)| reason as usize == at));
        let names: std::collections::BTreeSet<_> =
            Unjudged::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Unjudged::ALL.len());
    }
}
