/// Gives any bytes to something that mustn't be harmed by them, and finds out when that takes what it mustn't.
///
/// What tests, the fuzzer and the replay of its findings have in common. Nothing that it runs may trap.
public protocol Probe: SendableMetatype {
  /// What the fuzzer runs, each with its own corpus in Tests/Fuzz/Corpus.
  associatedtype Target: RawRepresentable<String>, CaseIterable, Sendable

  /// - Throws: ``ProbeViolation`` when something that must hold doesn't.
  static func run(_ target: Target, on input: [UInt8]) throws
}

extension Probe {
  /// What a target's name stands for; nil for one of another probe.
  public static func runner(of name: String) -> (@Sendable ([UInt8]) throws -> Void)? {
    guard let target = Target(rawValue: name) else { return nil }
    return { bytes in try run(target, on: bytes) }
  }

  public static var targets: [String] { Target.allCases.map(\.rawValue) }
}

/// Something that must hold doesn't.
public struct ProbeViolation: Error, CustomStringConvertible {
  public let description: String

  public init(_ description: String) {
    self.description = description
  }
}

/// Memory of just the bytes, so that the address sanitizer finds a read outside.
public func withExactMemory<T>(
  _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> T
) rethrows -> T {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
  defer { memory.deallocate() }
  memory.copyBytes(from: bytes)
  return try body(UnsafeRawBufferPointer(memory))
}
