//! Tests of the parts that a signature covers, and of its permissions.
//!
//! The signed texts are written here as Microsoft's reference has them.

use super::*;
use crate::operation::Operation;

const KEY: &str = "c2l4dGVlbiBieXRlcyBvciBtb3Jl";

fn verified(path: &str, blob: &str, signed_name: &str) -> Option<Code> {
    let account = Account::new("acc", KEY).expect("an account");
    let mut head = crate::tests::head();
    head.target.container = Some("con".to_owned());
    head.target.blob = Some(blob.to_owned());
    path.clone_into(&mut head.path);
    let (until, version) = ("2100-01-01T00:00:00Z", "2015-04-05");
    let resource = format!("/blob/acc/con/{signed_name}");
    let text = format!("r\n\n{until}\n{resource}\n\n\n\n{version}\n\n\n\n\n");
    let signature = account.sign(&text);
    let query = [("sp", "r"), ("se", until), ("sv", version), ("sr", "b"), ("sig", &signature)];
    head.query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    verify(&head, &account, &Policies::new()).err().map(|fault| fault.code)
}

#[test]
fn a_signature_has_the_name_with_backslashes_or_with_slashes() {
    let refused = Some(Code::AuthenticationFailed);
    for path in ["/acc/con/a%5Cb/c", "/con/a%5cb/c"] {
        assert_eq!(verified(path, "a/b/c", "a\\b/c"), None, "{path}");
        assert_eq!(verified(path, "a/b/c", "a/b/c"), None, "{path}");
        for other in ["a/b\\c", "a\\b\\c", "b/c", "a%5Cb/c", ""] {
            assert_eq!(verified(path, "a/b/c", other), refused, "{path} {other}");
        }
    }
    assert_eq!(verified("/acc/con/a/b", "a/b", "a\\b"), refused);
}

#[test]
fn a_batch_may_be_sent_with_a_signature_for_any_resource_type() {
    let may = |scope: Scope| {
        let permits = Permits { permissions: "d".to_owned(), scope };
        let operation = Operation::SubmitBatch;
        permits.check(operation.level(), operation.letters(false), false).is_ok()
    };
    for levels in ["s", "c", "o", "sc", "sco"] {
        assert!(may(Scope::Account(levels.to_owned())), "{levels}");
    }
    assert!(may(Scope::Container));
    assert!(!may(Scope::Account(String::new())) && !may(Scope::Blob) && !may(Scope::Snapshot));
}

const NOW: Moment = Moment(1_795_305_909_000_000_000);
const REFUSED: Option<Code> = Some(Code::AuthenticationFailed);

/// A request with a signature.
struct Signed {
    head: Head,
    policies: Policies,
}

fn account() -> Account {
    Account::new("acc", KEY).expect("an account")
}

impl Signed {
    /// Builds a request for a blob, with these parameters and a signature of all of them.
    fn service(params: &[(&str, &str)]) -> Self {
        let mut signed = Self::unsigned(params);
        let get = |name: &str| signed.head.param(name).unwrap_or_default().to_owned();
        let sv = get("sv");
        let resource = if get("sr") == "c" { "/blob/acc/con" } else { "/blob/acc/con/disk" };
        let mut lines = vec![get("sp"), get("st"), get("se"), resource.to_owned()];
        lines.extend(["si", "sip", "spr", "sv"].map(get));
        if *sv >= *"2018-11-09" {
            lines.extend([get("sr"), get("snapshot")]);
        }
        if *sv >= *"2020-12-06" {
            lines.push(get("ses"));
        }
        lines.extend(["rscc", "rscd", "rsce", "rscl", "rsct"].map(get));
        signed.sign(&lines.join("\n"));
        signed
    }

    /// Builds the same with a signature for the account.
    fn account(params: &[(&str, &str)]) -> Self {
        let mut signed = Self::unsigned(params);
        let get = |name: &str| signed.head.param(name).unwrap_or_default().to_owned();
        let mut lines = vec!["acc".to_owned()];
        lines.extend(["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].map(get));
        if *get("sv") >= *"2020-12-06" {
            lines.push(get("ses"));
        }
        lines.push(String::new());
        signed.sign(&lines.join("\n"));
        signed
    }

    fn unsigned(params: &[(&str, &str)]) -> Self {
        let mut head = crate::tests::head();
        head.target.container = Some("con".to_owned());
        head.target.blob = Some("disk".to_owned());
        "/acc/con/disk".clone_into(&mut head.path);
        head.query = params.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        head.now = NOW;
        Self { head, policies: Policies::new() }
    }

    fn sign(&mut self, text: &str) {
        self.head.query.push(("sig".to_owned(), account().sign(text)));
    }

    /// Changes a parameter that may be signed.
    fn set(&mut self, name: &str, value: &str) {
        self.head.query.retain(|(own, _)| own != name);
        self.head.query.push((name.to_owned(), value.to_owned()));
    }

    fn with_policy(mut self, start: Option<&str>, expiry: Option<&str>, may: Option<&str>) -> Self {
        let [start, expiry, permission] = [start, expiry, may].map(|text| text.map(str::to_owned));
        let policy = Policy { id: "kept".to_owned(), start, expiry, permission };
        let other = Policy { id: "other".to_owned(), ..Policy::default() };
        self.policies.insert(("acc".to_owned(), "con".to_owned()), vec![other, policy]);
        self
    }

    fn verified(&self) -> Result<Permits> {
        verify(&self.head, &account(), &self.policies)
    }

    fn code(&self) -> Option<Code> {
        self.verified().err().map(|fault| fault.code)
    }
}

const UNTIL: (&str, &str) = ("se", "2100-01-01T00:00:00Z");
const SV: (&str, &str) = ("sv", "2020-12-06");

/// Signs with these terms beside what is mandatory.
fn with(terms: &[(&str, &str)]) -> Signed {
    Signed::service(&[&[("sp", "r"), ("sr", "b"), SV], terms].concat())
}

#[test]
fn a_signature_holds_from_its_start_until_before_its_expiry() {
    let (start, expiry) = ("2026-11-22T00:05:09Z", "2026-11-22T00:05:10Z");
    let at = |now: u64| {
        let mut signed = with(&[("st", start), ("se", expiry)]);
        signed.head.now = Moment(now);
        signed.code()
    };
    assert_eq!(at(NOW.0 - 1), REFUSED);
    assert_eq!(at(NOW.0), None);
    assert_eq!(at(NOW.0 + 999_999_999), None);
    assert_eq!(at(NOW.0 + 1_000_000_000), REFUSED);
    assert_eq!(with(&[]).code(), REFUSED, "it must end");
    for no_time in [("se", "tomorrow"), ("st", "2026-13-01")] {
        assert_eq!(with(&[no_time, UNTIL]).code(), REFUSED, "{no_time:?}");
    }
}

#[test]
fn a_range_of_addresses_includes_both_ends() {
    let from = |range: &str, address: &str| {
        let mut signed = with(&[UNTIL, ("sip", range)]);
        signed.head.from = address.parse().expect("an address");
        signed.code()
    };
    let other = Some(Code::AuthorizationSourceIPMismatch);
    let range = "10.0.0.5-10.0.1.7";
    for (address, expect) in [
        ("10.0.0.4", other),
        ("10.0.0.5", None),
        ("10.0.0.255", None),
        ("10.0.1.7", None),
        ("10.0.1.8", other),
        ("::ffff:10.0.0.5", None),
        ("::ffff:10.0.1.8", other),
    ] {
        assert_eq!(from(range, address), expect, "{address}");
    }
    assert_eq!((from("10.0.0.5", "10.0.0.5"), from("10.0.0.5", "10.0.0.6")), (None, other));
    for wrong in ["10.0.0.5-", "-10.0.0.5", "10.0.0.5-b", "10.0.1.7-10.0.0.5"] {
        assert_eq!(from(wrong, "10.0.0.5"), other, "{wrong}");
    }
}

#[test]
fn a_signature_for_https_needs_tls() {
    let by = |protocol: &str, secure: bool| {
        let mut signed = with(&[UNTIL, ("spr", protocol)]);
        signed.head.secure = secure;
        signed.code()
    };
    let other = Some(Code::AuthorizationProtocolMismatch);
    assert_eq!((by("https", true), by("https", false)), (None, other));
    for both in ["https,http", "http,https"] {
        assert_eq!((by(both, true), by(both, false)), (None, None), "{both}");
    }
    assert_eq!((by("http", true), by("http", false)), (other, other));
}

/// Each parameter that a version signs, changed after the signature was made. Versions before 2018-11-09 sign
/// the name of a resource and not its kind.
#[test]
fn nothing_that_is_signed_can_be_changed() {
    let all = ["sp", "st", "se", "si", "sip", "spr", "sv", "rscc", "rscd", "rsce", "rscl", "rsct"];
    let newer = |sv: &str| match sv {
        "2015-04-05" | "2018-11-08" => vec![],
        "2018-11-09" | "2020-12-05" => vec!["sr"],
        _ => vec!["sr", "ses"],
    };
    for sv in ["2015-04-05", "2018-11-08", "2018-11-09", "2020-12-05", "2020-12-06", "2026-02-06"] {
        let made = || {
            let terms = [("sp", "r"), ("sr", "b"), ("sv", sv), UNTIL, ("ses", "scope")];
            Signed::service(&terms)
        };
        assert_eq!(made().code(), None, "{sv}");
        let signed = all.into_iter().chain(newer(sv));
        for name in signed {
            let mut changed = made();
            let other = match name {
                "sr" => "bs",
                "sv" => "2021-01-01",
                _ => "else",
            };
            changed.set(name, other);
            let step = changed.verified().map_err(|fault| fault.reason());
            let expect = format!("AuthenticationFailed: {NOT_SIGNED}");
            assert_eq!(step, Err(expect), "{sv} {name}");
        }
        let mut free = made();
        free.set("timeout", "30");
        assert_eq!(free.code(), None, "{sv}");
    }
    let made = |sv| {
        let terms = [("sp", "r"), ("ss", "b"), ("srt", "o"), ("sv", sv), UNTIL];
        Signed::account(&terms)
    };
    for sv in ["2015-04-05", "2020-12-05", "2020-12-06"] {
        let own = if sv == "2020-12-06" { &["ses"][..] } else { &[] };
        assert_eq!(made(sv).code(), None, "{sv}");
        for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"].iter().chain(own) {
            let mut changed = made(sv);
            changed.set(name, if *name == "sv" { "2021-01-01" } else { "else" });
            assert_eq!(changed.code(), REFUSED, "{sv} {name}");
        }
    }
}

#[test]
fn versions_before_the_first_supported_one_are_refused() {
    let of = |sv| Signed::service(&[("sp", "r"), ("sr", "b"), ("sv", sv), UNTIL]).code();
    assert_eq!((of("2015-04-04"), of("2015-04-05")), (REFUSED, None));
    assert_eq!((of("latest"), of("")), (REFUSED, REFUSED));
    let delegated = with(&[UNTIL, ("skoid", "x")]);
    assert_eq!(delegated.code(), Some(Code::NotImplemented));
}

#[test]
fn a_signature_is_for_its_kind_of_resource() {
    let kind = |sr: &str, blob: bool, snapshot: bool| {
        let mut terms = vec![("sp", "r"), ("sr", sr), SV, UNTIL];
        if snapshot {
            terms.push(("snapshot", "2026-01-01T00:00:00.0000000Z"));
        }
        let mut signed = Signed::service(&terms);
        signed.head.target.blob = signed.head.target.blob.filter(|_| blob);
        signed.verified().map(|permits| permits.scope).map_err(|fault| fault.code)
    };
    assert_eq!(kind("c", true, false), Ok(Scope::Container));
    assert_eq!(kind("c", false, false), Ok(Scope::Container));
    assert_eq!(kind("b", true, false), Ok(Scope::Blob));
    assert_eq!(kind("bs", true, true), Ok(Scope::Snapshot));
    for (sr, blob) in [("bs", true), ("b", false), ("bs", false)] {
        assert_eq!(kind(sr, blob, false), Err(Code::AuthorizationFailure), "{sr} {blob}");
    }
    assert_eq!(kind("d", true, false), Err(Code::NotImplemented));
    assert_eq!(kind("x", true, false), Err(Code::AuthenticationFailed));
    let mut outside = with(&[UNTIL]);
    outside.head.target.container = None;
    assert_eq!(outside.code(), Some(Code::AuthorizationResourceTypeMismatch));
}

#[test]
fn an_account_signature_is_for_its_services_and_resource_types() {
    let of = |ss, srt| {
        let made = Signed::account(&[("sp", "rl"), ("ss", ss), ("srt", srt), SV, UNTIL]);
        made.verified().map_err(|fault| fault.code)
    };
    assert_eq!(of("q", "o"), Err(Code::AuthorizationServiceMismatch));
    let permits = of("bq", "so").expect("a signature for blobs");
    assert_eq!((&*permits.permissions, permits.scope), ("rl", Scope::Account("so".to_owned())));
    let expired = Signed::account(&[("ss", "b"), SV, ("se", "2026-11-22")]);
    assert_eq!(expired.code(), REFUSED);
}

/// Each level and scope: whether a read is permitted, and whether a list is.
#[test]
fn permissions_are_for_the_levels_of_their_scope() {
    let may = |scope: &Scope, level: Level, list: bool| {
        let permits = Permits { permissions: "rl".to_owned(), scope: scope.clone() };
        let letters = if list { "l" } else { "r" };
        assert!(permits.check(level, "wd", list).is_err(), "{scope:?} {level:?}");
        permits.check(level, letters, list).err().map(|fault| fault.code)
    };
    let levels = [Level::Service, Level::Container, Level::Object, Level::Any];
    let account = |levels: &str| Scope::Account(levels.to_owned());
    for (scope, reads, lists) in [
        (account("s"), "s..a", "s..a"),
        (account("c"), ".c.a", ".c.a"),
        (account("o"), "..oa", "..oa"),
        (Scope::Container, "..oa", ".coa"),
        (Scope::Blob, "..o.", "..o."),
        (Scope::Snapshot, "..o.", "..o."),
    ] {
        let refused = match scope {
            Scope::Account(_) => Code::AuthorizationResourceTypeMismatch,
            _ => Code::AuthorizationFailure,
        };
        for (expect, list) in [(reads, false), (lists, true)] {
            for (level, mark) in levels.into_iter().zip(expect.chars()) {
                let expect = (mark == '.').then_some(refused);
                assert_eq!(may(&scope, level, list), expect, "{scope:?} {level:?} {list}");
            }
        }
    }
    let permits = Permits { permissions: "r".to_owned(), scope: Scope::Blob };
    let other = permits.check(Level::Object, "wd", false).err().map(|fault| fault.code);
    assert_eq!(other, Some(Code::AuthorizationPermissionMismatch));
    assert!(permits.check(Level::Object, "wr", false).is_ok(), "one of the letters is enough");
}

#[test]
fn terms_are_in_the_signature_or_in_its_policy_and_not_in_both() {
    let (start, expiry) = ("2026-11-22T00:05:09Z", "2026-11-22T00:05:10Z");
    let kept = |terms: &[(&str, &str)]| {
        Signed::service(&[&[("sr", "b"), SV, ("si", "kept")], terms].concat())
    };
    let letters = |signed: Signed| {
        signed.verified().map(|permits| permits.permissions).map_err(|fault| fault.code)
    };
    let refused = Err(Code::AuthenticationFailed);
    assert_eq!(letters(kept(&[UNTIL])), refused, "there is no policy");
    let policy = |start, expiry, may| kept(&[]).with_policy(start, expiry, may);
    assert_eq!(letters(policy(Some(start), Some(expiry), Some("rw"))), Ok("rw".to_owned()));
    assert_eq!(letters(policy(None, Some(expiry), None)), Ok(String::new()));
    assert_eq!(letters(policy(Some(expiry), Some(expiry), Some("rw"))), refused, "not yet");
    assert_eq!(letters(policy(None, Some(start), Some("rw"))), refused, "no longer");
    assert_eq!(letters(policy(None, None, Some("rw"))), refused, "it must end");
    for (own, start, expiry, may) in [
        (("sp", "r"), None, Some(expiry), Some("r")),
        (("st", start), Some(start), Some(expiry), Some("r")),
        (("se", expiry), None, Some(expiry), Some("r")),
    ] {
        assert_eq!(letters(kept(&[own]).with_policy(start, expiry, may)), refused, "{own:?}");
    }
    let own = kept(&[("sp", "r"), UNTIL]).with_policy(Some(start), None, None);
    assert_eq!(letters(own), Ok("r".to_owned()));
}
