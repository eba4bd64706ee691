//! Clients that do not take what they asked for.

use super::not_storage::{Cause, finding, longest, of_class, storage_words};
use super::waits::Class;
use super::{Found, Rule, source};
use crate::case::Case;
use weir_report::diagnosis::{Confidence, Group};

pub(super) const RULE: Rule = Rule {
    id: 303,
    name: "client",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::WAITS,
    finds: "most of the waiting is for clients or the network to them",
    find,
};

fn find(case: &Case<'_>, rule: &Rule) -> Vec<Found> {
    let Some(waited) = of_class(case, Class::Client) else { return Vec::new() };
    let text = format!("the server waits for its clients to take or send: {}", waited.words());
    let Some(mut finding) = finding(case, rule, Cause::Client, "clients", &text) else {
        return Vec::new();
    };
    finding.confidence = Confidence::High;
    let is = |wait: &crate::follow::WaitFacts| Class::of(&wait.name) == Class::Client;
    finding.evidence.push(longest(case, is));
    finding.evidence.extend(storage_words(case));
    "look at the client: let it fetch all rows before it works on them, ask for fewer, keep \
     transactions from waiting for it, and measure the network between; storage does not help"
        .clone_into(&mut finding.action);
    vec![finding.into()]
}

#[cfg(test)]
mod tests {
    use crate::bed::Bed;

    #[test]
    fn most_of_the_waiting() {
        let bed = || Bed::bare().wait("ASYNC_NETWORK_IO", 800.0);
        assert_eq!(bed().wait("PAGEIOLATCH_SH", 200.0).found("client").len(), 1);
        assert_eq!(Bed::bare().wait("ClientRead", 800.0).found("client").len(), 1);
        // A third of it.
        assert!(!bed().wait("PAGEIOLATCH_SH", 1600.0).finds("client"));
    }
}
