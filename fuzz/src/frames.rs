//! Frames: the receiver gets the sent frames in order and once, up to the first altered byte, which
//! causes an error. Bytes that were not sent yield no frame.

use std::sync::OnceLock;

use super::{connection, damaged, first, identity, key};
use webtwin_engine::frames::{Frame, FrameReader, FrameWriter, MAX_PAYLOAD_BYTES, Session};
use webtwin_engine::handshake::{Arrival, ConnectionPurpose, accept, dial};
use webtwin_engine::key::ClusterKey;

/// Returns both ends of a session without encryption and of an encrypted one.
fn sessions() -> &'static [[Session; 2]; 2] {
    static SESSIONS: OnceLock<[[Session; 2]; 2]> = OnceLock::new();
    SESSIONS.get_or_init(|| {
        [ClusterKey::none(), key()].map(|key| {
            let [here, there] = connection();
            let dialed = std::thread::scope(|scope| {
                let dialing = scope.spawn(|| dial(&there, &identity(1), &key, ConnectionPurpose::Data, 0, "there"));
                let arrival = accept(&here, &identity(0), &key, |_, _| true);
                (arrival, dialing.join().expect("the thread does not panic"))
            });
            match dialed {
                (Arrival::Joined(_, _, here), Ok(there)) => [here, there],
                other => panic!("two processes of one cluster do not connect: {other:?}"),
            }
        })
    })
}

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    let Some((how, rest)) = first(data) else { return };
    let [here, there] = &sessions()[how % 2];
    if how & 2 == 0 {
        let mut reader = FrameReader::new(there, 0);
        assert!(reader.next(&mut &rest[..], &mut [], &mut Vec::new()).is_err());
        return;
    }
    // The first half of the input determines the frames: payloads by length, heartbeats and the
    // end.
    let (frames, changes) = rest.split_at(rest.len() / 2);
    let (mut writer, mut sent_frames, mut bytes) = (FrameWriter::new(here, 0), Vec::new(), Vec::new());
    for &byte in frames.iter().take(40) {
        let (what, length) = match byte {
            0 => (Frame::End, 0),
            1 => (Frame::Alive, 0),
            2 => (Frame::Payload, MAX_PAYLOAD_BYTES),
            byte => (Frame::Payload, usize::from(byte) - 2),
        };
        let payload = vec![byte; length];
        writer.send(&mut bytes, what, &payload).expect("writing to memory succeeds");
        sent_frames.push((bytes.len(), what, payload));
    }
    let arrived = damaged(&bytes, changes);
    let same = bytes.iter().zip(&arrived).take_while(|(x, y)| x == y).count();
    let (mut reader, mut from) = (FrameReader::new(there, 0), &arrived[..]);
    let (mut scratch, mut aside) = (vec![0; MAX_PAYLOAD_BYTES + 16], Vec::new());
    for (number, (end, what, was)) in sent_frames.into_iter().enumerate() {
        let into = if number % 2 == 0 { &mut scratch[..] } else { &mut [] };
        match reader.next(&mut from, into, &mut aside) {
            Ok((frame, bytes)) => {
                let payload = [&scratch[..bytes], &aside].concat();
                assert!(end <= same && frame == what && payload == was, "{end} of {same}: {frame:?}");
            }
            Err(_) => {
                assert!(end > same, "{end} of {same}");
                return;
            }
        }
    }
    assert!(reader.next(&mut from, &mut scratch, &mut aside).is_err());
}
