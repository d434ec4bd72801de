//! Why what came on a path has no verdict: the reasons that are counted, and named in records.

use crate::named::named;

named! {
    /// Why an answer has no verdict.
    pub enum Unjudged {
        /// The origin gave no whole answer, or no majority of addresses agrees.
        NoReference = "no_reference",
        /// Both the path and the origin failed.
        OriginFailed = "origin_failed",
        /// The origin answered differently when asked again.
        OriginVaries = "origin_varies",
        /// Another proxy has the same answer, which the origin may have given earlier.
        SeenElsewhere = "seen_elsewhere",
        /// An unsafe method: each copy was a separate request.
        NotRepeated = "not_repeated",
        /// A cache may answer differently: condition, range or `only-if-cached`.
        MayDiffer = "may_differ",
    }
}
