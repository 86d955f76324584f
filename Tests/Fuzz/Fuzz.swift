// The fuzzer's way into SluiceWire and SluiceStore; `scripts/fuzz.sh` builds and runs it. Not part of the package.

import Glibc
import SluiceStore
import SluiceWire

/// Set once, before the first input.
private let run: @Sendable ([UInt8]) throws -> Void = {
  let name = getenv("SLUICE_FUZZ_TARGET").map { String(cString: $0) } ?? ""
  if let target = WireProbe.Target(rawValue: name) { return { try WireProbe.run(target, on: $0) } }
  if let target = StoreProbe.Target(rawValue: name) { return { try StoreProbe.run(target, on: $0) } }
  let names = WireProbe.Target.allCases.map(\.rawValue) + StoreProbe.Target.allCases.map(\.rawValue)
  fatalError("SLUICE_FUZZ_TARGET must be one of \(names.joined(separator: ", "))")
}()

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  do {
    try run(Array(UnsafeBufferPointer(start: bytes, count: count)))
  } catch {
    fatalError("\(error)")
  }
  return 0
}
