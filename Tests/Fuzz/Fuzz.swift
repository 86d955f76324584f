// The fuzzer's entry to all decoders of outside bytes; `scripts/fuzz.sh` builds and runs it. Not part of the package.

import Glibc
import TestSupport

private let probes: [any Probe.Type] = [
  WireProbe.self, StoreProbe.self, AccessProbe.self, NATSProbe.self, BrokerProbe.self, ClientProbe.self,
  CommandProbe.self, WebSocketProbe.self, MQTTProbe.self, MQTTValueProbe.self, HTTPSessionProbe.self,
  HTTPProbe.self,
]

/// The target named by `SLUICE_FUZZ_TARGET` in the environment. Set once, before the first input.
private let run: @Sendable ([UInt8]) throws -> Void = {
  let name = getenv("SLUICE_FUZZ_TARGET").map { String(cString: $0) } ?? ""
  for probe in probes { if let run = probe.runner(of: name) { return run } }
  fatalError("there is no target '\(name)'")
}()

/// Called by libFuzzer before anything else. Without a target it prints the available ones.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(
  _ count: UnsafeMutablePointer<CInt>?, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) -> CInt {
  guard getenv("SLUICE_FUZZ_TARGET") == nil else { return 0 }
  for probe in probes { for target in probe.targets { print(target) } }
  exit(0)
}

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
