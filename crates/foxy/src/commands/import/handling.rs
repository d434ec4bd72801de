//! For the import of nginx and HAProxy: says whether a directive is converted, or why it is not.
//! Each program has a table that gives this answer for each directive.

use super::report::ImportReason;

/// Whether the import converts a directive, or why it does not.
#[derive(Clone, Copy, Debug)]
pub enum DirectiveHandling {
    /// The import converts the directive, in the code for its section, server or location.
    Read,
    /// foxy needs no setting for this directive. The text says what foxy does.
    NotNeeded(&'static str),
    /// foxy has no equivalent.
    Missing(&'static str),
    /// foxy has no equivalent, and so permits more than the original.
    Opens(&'static str),
}

/// Text for directives about processes, users and files.
pub const UNIT: &str = "the service manager decides this; see packaging/systemd";
/// Text for directives that only ask for the behaviour that foxy always has.
pub const ALWAYS: &str = "foxy always does this";

impl DirectiveHandling {
    /// Returns the reason with which the report lists the directive. Returns `None` if the import
    /// converts it. `handling` is `None` if the table has no row for the directive.
    pub fn reason(handling: Option<Self>) -> Option<ImportReason> {
        Some(match handling {
            Some(Self::Read) => return None,
            Some(Self::NotNeeded(why)) => ImportReason::NotNeeded(why.into()),
            Some(Self::Missing(why)) => ImportReason::Missing(why.into()),
            Some(Self::Opens(why)) => ImportReason::Opens(why.into()),
            None => ImportReason::Missing("foxy has no such setting".into()),
        })
    }
}
