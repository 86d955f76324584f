import Synchronization

/// Tells publisher streams apart.
public struct CombineIdentifier: Hashable, CustomStringConvertible, Sendable {
  private let rawValue: UInt64

  private static let last = Atomic<UInt64>(0)

  /// An identifier that no other call returns.
  public init() {
    rawValue = CombineIdentifier.last.add(1, ordering: .relaxed).oldValue
  }

  /// The identifier of an object, valid for as long as the object lives.
  public init(_ object: AnyObject) {
    rawValue = UInt64(UInt(bitPattern: ObjectIdentifier(object)))
  }

  /// The identifier of something that stays at an address for as long as it lives.
  @usableFromInline
  init(address: UnsafeRawPointer) {
    rawValue = UInt64(UInt(bitPattern: address))
  }

  /// The identifier as a hexadecimal number.
  public var description: String {
    "0x" + String(rawValue, radix: 16)
  }
}
