//! The list of the operator's rules in the final settings, which is compiled at most once.

use foxy_rules::operator::{OperatorRule, OperatorRules, RuleError};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

type Compiled = Result<OperatorRules, (usize, RuleError)>;

/// Rules in order. Clones share the compiled form.
#[derive(Clone, Debug, Default)]
pub struct RuleList {
    list: Vec<OperatorRule>,
    compiled: Arc<OnceLock<Compiled>>,
}

impl RuleList {
    /// Returns the compiled rules. The error has the position of the rule that is not valid.
    pub fn compiled(&self) -> Result<&OperatorRules, &(usize, RuleError)> {
        self.compiled.get_or_init(|| OperatorRules::new(self.list.clone())).as_ref()
    }
}

impl FromIterator<OperatorRule> for RuleList {
    fn from_iter<I: IntoIterator<Item = OperatorRule>>(rules: I) -> Self {
        Self { list: rules.into_iter().collect(), compiled: Arc::default() }
    }
}

impl Deref for RuleList {
    type Target = [OperatorRule];

    fn deref(&self) -> &[OperatorRule] {
        &self.list
    }
}

impl PartialEq for RuleList {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for RuleList {}
