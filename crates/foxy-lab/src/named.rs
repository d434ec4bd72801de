//! A macro for enums whose variants have names in records, such as causes of errors. One table
//! gives each variant with its name, and with a description if people read the names.

/// Declares an enum with `ALL` and `name`, and with `description` if the table has descriptions.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[$doc])* $variant,)+ }

        impl $type {
            /// Every variant, in the order of reports.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the variant's name in tables and records.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub enum $type:ident { $($variant:ident = $name:literal: $description:literal,)+ }
    ) => {
        $crate::named::named! {
            $(#[$meta])*
            pub enum $type { $(#[doc = $description] $variant = $name,)+ }
        }

        impl $type {
            /// Returns one line for people: the problem, and the remedy if there is any.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$variant => $description),+ }
            }
        }
    };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    use crate::leap::collector::{Failure, Refusal, Source};
    use crate::leap::{Carriage, Class, FrontRefusal, PathFailure, Unjudged, Verdict};
    use crate::load::outcome::ErrorCause;
    use crate::load::wpb::{Cause, Part};
    use crate::wire::tls::HandshakeFailure;
    use std::collections::BTreeSet;

    #[test]
    fn every_variant_is_at_its_place_and_has_its_own_name() {
        macro_rules! check {
            ($($type:ident)+) => { $(
                assert!($type::ALL.iter().enumerate().all(|(at, &variant)| variant as usize == at));
                let names: BTreeSet<_> = $type::ALL.iter().map(|variant| variant.name()).collect();
                assert_eq!(names.len(), $type::ALL.len());
            )+ };
        }
        check! {
            Carriage Cause Class ErrorCause Failure FrontRefusal HandshakeFailure Part PathFailure
            Refusal Source Unjudged Verdict
        }
    }
}
