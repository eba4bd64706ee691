//! A volume that comes and goes, and what is under way of it.

use super::rig::{Rig, host, iops, memory, volume};
use weir_core::VolumeSpec;
use weir_units::{Bytes, Span};

/// Ten requests at one per second, which complete at once when the volume is removed.
#[test]
fn waiting_requests_of_a_removed_volume_complete_at_once() {
    let size = Bytes::mib(1);
    let mut rig = Rig::new(host(vec![volume(size)]), vec![memory(size)]);
    let slow = VolumeSpec { limits: iops(1), ..volume(size) };
    let (id, device) = rig.host.add_volume(rig.now, slow, memory(size)).expect("it fits");
    let reads: Vec<u64> = (0..10).map(|_| rig.read(device.0, 0, 512)).collect();
    rig.turn();
    let answered = |rig: &Rig| reads.iter().filter(|read| rig.answer(**read).is_some()).count();
    assert_eq!(answered(&rig), 1);
    assert!(!rig.host.remove_volume(rig.now, id, device), "nine are under way");
    rig.wait(Span::from_secs(1));
    assert_eq!(answered(&rig), 2);
    rig.host.hasten(rig.now, id);
    rig.turn();
    assert_eq!(answered(&rig), 10);
    assert!(rig.host.remove_volume(rig.now, id, device));
    assert_eq!(rig.host.size(device), Bytes::ZERO);
}
