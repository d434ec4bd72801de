//! How the import of nginx and HAProxy handles a directive. Each program has a table of directives.

use super::report::ImportReason;

/// How the import handles a directive.
#[derive(Clone, Copy, Debug)]
pub enum DirectiveHandling {
    /// The conversion of a section, server or location reads the directive.
    Read,
    /// foxy works so without a setting.
    NotNeeded(&'static str),
    /// foxy has no equivalent.
    Missing(&'static str),
    /// foxy has no equivalent, and permits more.
    Opens(&'static str),
}

/// The service manager decides about processes, users and files.
pub const UNIT: &str = "the service manager decides this; see packaging/systemd";
/// foxy has no other behaviour.
pub const ALWAYS: &str = "foxy always works so";

impl DirectiveHandling {
    /// Returns the reason to report the directive. Returns `None` if the conversion reads the
    /// directive. `handling` is `None` if the table has no row for the directive.
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
