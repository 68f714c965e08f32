// What backends/coreml uses of Apple's Foundation, with the same signatures, so that it is compiled where that is not.
#pragma once

#include <stddef.h>

#define API_AVAILABLE(...)
#define NS_NOESCAPE __attribute__((noescape))

typedef long NSInteger;
typedef unsigned long NSUInteger;
typedef signed char MoteObjCBool;
#define nil nullptr

__attribute__((objc_root_class))
@interface NSObject
+ (instancetype)alloc;
- (instancetype)init;
@end

@interface NSString : NSObject
+ (instancetype)stringWithUTF8String:(const char*)text;
@property(readonly) const char* UTF8String;
@end

@interface NSConstantString : NSString
@end

@interface NSError : NSObject
@property(readonly) NSString* localizedDescription;
@end

@interface NSException : NSObject
@property(readonly) NSString* reason;
@end

@interface NSNumber : NSObject
+ (NSNumber*)numberWithInt:(int)value;
+ (NSNumber*)numberWithLong:(long)value;
+ (NSNumber*)numberWithLongLong:(long long)value;
@property(readonly) long long longLongValue;
@end

struct NSFastEnumerationState {
  unsigned long state;
  __unsafe_unretained id* itemsPtr;
  unsigned long* mutationsPtr;
  unsigned long extra[5];
};

@interface NSArray<__covariant ObjectType> : NSObject
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(__unsafe_unretained id*)buffer
                                    count:(NSUInteger)count;
@end

@interface NSMutableArray<ObjectType> : NSArray <ObjectType>
+ (instancetype)array;
- (void)addObject:(ObjectType)object;
@end

@interface NSDictionary<__covariant KeyType, __covariant ObjectType> : NSObject
@end

@interface NSMutableDictionary<KeyType, ObjectType> : NSDictionary <KeyType, ObjectType>
+ (instancetype)dictionary;
- (void)setObject:(ObjectType)object forKeyedSubscript:(KeyType)key;
@end

@interface NSURL : NSObject
+ (NSURL*)fileURLWithPath:(NSString*)path;
@end

@interface NSFileManager : NSObject
@property(class, readonly) NSFileManager* defaultManager;
- (MoteObjCBool)removeItemAtURL:(NSURL*)url error:(NSError**)error;
- (MoteObjCBool)moveItemAtURL:(NSURL*)from toURL:(NSURL*)to error:(NSError**)error;
@end

@interface NSProcessInfo : NSObject
@property(class, readonly) NSProcessInfo* processInfo;
@property(readonly) NSString* operatingSystemVersionString;
@end
