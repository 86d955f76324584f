/// A type whose instances can be told apart, in a log for example.
public protocol CustomCombineIdentifierConvertible {
  /// What identifies this instance.
  var combineIdentifier: CombineIdentifier { get }
}

extension CustomCombineIdentifierConvertible where Self: AnyObject {
  /// The identity of the object.
  @inlinable
  public var combineIdentifier: CombineIdentifier {
    CombineIdentifier(self)
  }
}
