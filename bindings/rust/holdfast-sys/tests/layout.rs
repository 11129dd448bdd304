//! Every structure is what the header says: sizes and offsets, asked of the C compiler.
use std::mem::{offset_of, size_of};
use std::process::Command;

use holdfast_sys::*;

macro_rules! layout {
    ($($name:ident { $($field:ident),* })*) => {{
        let mut expected = Vec::new();
        let mut program = String::from(
            "#include <holdfast.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n");
        $(
            expected.push(format!("{} {}", stringify!($name), size_of::<$name>()));
            program += concat!("printf(\"", stringify!($name), " %zu\\n\", sizeof(", stringify!($name), "));\n");
            $(
                expected.push(format!("{}.{} {}", stringify!($name), stringify!($field), offset_of!($name, $field)));
                program += concat!("printf(\"", stringify!($name), ".", stringify!($field),
                    " %zu\\n\", offsetof(", stringify!($name), ", ", stringify!($field), "));\n");
            )*
        )*
        (program + "return 0; }\n", expected)
    }};
}

#[test]
fn structures_are_those_of_the_header() {
    let (program, expected) = layout! {
        hf_error { code, retriable, store_code, may_hold_ms, text }
        hf_client_options { size, program, modules, metrics, on_log, log_arg }
        hf_log_entry { kind, level, cause, code, name, name_len, text }
        hf_options { size, mode, limit, ttl_ms, wait_ms, lock_delay_ms, max_hold_ms, reentrant, owner, by_hand,
                     confirmed, note, cancel, on_at_risk, on_lost, on_wait, arg, patience_ms, on_wanted, wanted }
        hf_event { size, kind, cause, tag, lock, err }
        hf_entry { name, name_len, place, position, mode, limit, ticket, generation, ttl_ms, lock_delay_ms, age_ms,
                   remaining_ms, claimed, host, user, program, note, pid }
        hf_query { size, name, name_len, prefix, prefix_len, older_than_ms, value }
        hf_store_info { name, schemes, summary, capabilities, options, ddl, missing }
    };
    let directory = std::env::temp_dir().join(format!("holdfast-layout-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (source, binary) = (directory.join("layout.c"), directory.join("layout"));
    std::fs::write(&source, program).unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/csrc");
    let compiled = Command::new("cc").arg(include).arg(&source).arg("-o").arg(&binary).status();
    assert!(compiled.expect("a C compiler").success());
    let output = Command::new(&binary).output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}
