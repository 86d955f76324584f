/// Passes arbitrary bytes to code that must withstand them, and checks that it accepts no invalid ones.
///
/// Shared by tests, the fuzzer and the replay of its findings. The code that it runs must never trap.
public protocol Probe: SendableMetatype {
  /// The fuzzer's targets, each with its own corpus in Tests/Fuzz/Corpus.
  associatedtype Target: RawRepresentable<String>, CaseIterable, Sendable

  /// - Throws: ``ProbeViolation`` if a condition is violated.
  static func run(_ target: Target, on input: [UInt8]) throws
}

extension Probe {
  /// The function for a target's name; nil for a target of another probe.
  public static func runner(of name: String) -> (@Sendable ([UInt8]) throws -> Void)? {
    guard let target = Target(rawValue: name) else { return nil }
    return { bytes in try run(target, on: bytes) }
  }

  public static var targets: [String] { Target.allCases.map(\.rawValue) }
}

/// A violated condition.
public struct ProbeViolation: Error, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}

/// Memory of exactly these bytes, so that the address sanitizer finds a read outside.
public func withExactMemory<T>(
  _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> T
) rethrows -> T {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { memory.deallocate() }
  memory.copyBytes(from: bytes)
  return try body(UnsafeRawBufferPointer(memory))
}
