// The fuzzer's way into SluiceWire; `scripts/fuzz.sh` builds and runs it. Not part of the package.

import Glibc
import SluiceWire

/// Set once, before the first input.
private let target: WireProbe.Target = {
  let name = getenv("SLUICE_FUZZ_TARGET").map { String(cString: $0) } ?? ""
  guard let target = WireProbe.Target(rawValue: name) else {
    let names = WireProbe.Target.allCases.map(\.rawValue).joined(separator: ", ")
    fatalError("SLUICE_FUZZ_TARGET must be one of \(names)")
  }
  return target
}()

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  do {
    try WireProbe.run(target, on: Array(UnsafeBufferPointer(start: bytes, count: count)))
  } catch {
    fatalError("\(error)")
  }
  return 0
}
