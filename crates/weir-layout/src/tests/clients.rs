//! The clients of exports.

use super::{layout, parse};
use crate::clients::Client;

const VOLUME: &str = "[[volume]]\nname = \"a\"\nunlimited = true\n";

fn with(clients: &str) -> String {
    format!("{VOLUME}clients = {clients}\n")
}

fn admits(text: &str, export: &str, address: &str) -> bool {
    let client = Client { address: address.parse().expect("an address"), names: Vec::new() };
    let access = layout(text).access;
    access.of_export(export).is_none_or(|own| own.check(&client).is_ok())
}

#[test]
fn clients_of_a_volume_or_stripe_replace_those_of_the_layout() {
    let text = format!(
        "clients = {{ addresses = [\"10.0.0.0/8\"] }}\n{VOLUME}\
         [[volume]]\nname = \"own\"\nunlimited = true\nclients = {{ addresses = [\"::1\"] }}\n\
         [[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = {{ count = 2, unlimited = true }}\n\
         clients = {{ addresses = [\"192.168.0.7\"] }}\n"
    );
    let all = ["10.0.0.1", "::1", "192.168.0.7", "127.0.0.1"];
    let admitted = |export| all.map(|address| admits(&text, export, address));
    assert_eq!(admitted("a"), [true, false, false, false]);
    assert_eq!(admitted("own"), [false, true, false, false]);
    assert_eq!(admitted("s"), [false, false, true, false]);
    // An export that comes later has those of the layout.
    assert_eq!(admitted("blob"), [true, false, false, false]);
    assert!(layout(VOLUME).access.is_open());
}

#[test]
fn wrong_clients_are_refused_with_their_place() {
    let check = |text: &str, expect: &str| {
        let said = parse(text).unwrap_err();
        assert!(said.starts_with("layout.toml:") && said.contains(expect), "{said}");
    };
    let volume = |clients: &str, expect: &str| {
        let said = parse(&with(clients)).unwrap_err();
        assert!(said.starts_with("layout.toml:4:") && said.contains(expect), "{said}");
    };
    volume("{}", "volume \"a\": clients is empty; give addresses, certificates or both");
    volume("{ addresses = [] }", "addresses = [] admits nobody");
    volume("{ certificates = [] }", "certificates = [] admits nobody");
    volume("{ certificates = [\"\"] }", "is empty, or begins or ends with a blank");
    volume("{ adresses = [\"::1\"] }", "unknown field");
    let table = "expected a table like { addresses = [\"10.0.0.7\"] }";
    volume("[\"10.0.0.1\"]", table);
    volume("\"10.0.0.1\"", table);
    volume("{ addresses = \"10.0.0.1\" }", "expected a list of texts in brackets");
    for wrong in ["db1.example", "10.0.0.0/33", "10.0.0", "10.0.0.1:80", "*", ""] {
        let list = format!("{{ addresses = [\"10.0.0.1\", {wrong:?}] }}");
        volume(&list, &format!("{wrong:?} is neither an address nor a network"));
    }
    volume(
        "{ addresses = [\"10.0.0.7/8\"] }",
        "write \"10.0.0.0/8\" for the network, or \"10.0.0.7\" for one client",
    );
    check(
        "clients = { addresses = [\"x\"] }\n[[volume]]\nname = \"a\"\nunlimited = true",
        "the layout: ",
    );
    let column = "a column of a stripe is not an export; give clients to the stripe";
    check(
        "[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = { count = 2, unlimited = true, \
         clients = { addresses = [\"::1\"] } }",
        column,
    );
    let named = "[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = [\"b\", \"a\"]\n";
    let other = VOLUME.replace("\"a\"", "\"b\"");
    check(&format!("{other}{}{named}", with("{ addresses = [\"::1\"] }")), column);
}
