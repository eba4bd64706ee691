//! Clients that do not take what they asked for.

use super::not_storage::Dominant;
use super::rule::{Rule, source};
use super::waits::Class;
use crate::verdict::Cause;
use weir_report::diagnosis::Group;

pub(super) const RULE: Rule = Rule {
    id: 303,
    name: "client",
    group: Group::NotTheStorage,
    priority: 20,
    source: source::WAITS,
    finds: "most wait time is for clients or the network",
    find: |case, rule| DOMINANT.find(case, rule),
};

const DOMINANT: Dominant = Dominant {
    cause: Cause::Client,
    subject: "clients",
    text: "the server waits for its clients",
    action: "check the client: fetch all rows before processing them, request fewer rows, do not wait for the \
     client within transactions, and measure the network; storage does not help",
    is: |wait| Class::from_name(&wait.name) == Class::Client,
};

#[cfg(test)]
mod tests {
    use crate::bed::TestBed;

    #[test]
    fn dominant_waits_are_the_cause() {
        let bed = || TestBed::bare().wait("ASYNC_NETWORK_IO", 800.0);
        assert_eq!(bed().wait("PAGEIOLATCH_SH", 200.0).found("client").len(), 1);
        assert_eq!(TestBed::bare().wait("ClientRead", 800.0).found("client").len(), 1);
        // A third of it.
        assert!(!bed().wait("PAGEIOLATCH_SH", 1600.0).finds("client"));
    }
}
