//! Why what came on a path has no verdict: the reasons that are counted, and named in records.

/// Why there is nothing to say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// The origin gave no whole answer, or no more than half of the addresses agree about one.
    NoReference,
    /// The path failed, and so did the origin itself.
    OriginFailed,
    /// The origin did not say the same when it was asked again.
    OriginVaries,
    /// Another proxy has the same answer, so that the origin may have given it before the
    /// reference.
    SeenElsewhere,
    /// The method may change something, so that each path's request was another one, and the origin
    /// was not asked again.
    NotRepeated,
    /// A cache may answer the request so by itself, because of its condition, its range or
    /// `only-if-cached`.
    MayDiffer,
}

impl Unjudged {
    /// Every reason, in the order of a report's counts.
    pub const ALL: [Self; 6] = [
        Self::NoReference,
        Self::OriginFailed,
        Self::OriginVaries,
        Self::SeenElsewhere,
        Self::NotRepeated,
        Self::MayDiffer,
    ];

    /// Its name in records.
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
