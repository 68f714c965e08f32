// What backends/coreml uses of Apple's Core ML, with the same signatures.
#pragma once

#import <Foundation/Foundation.h>

enum MLComputeUnits : NSInteger {
  MLComputeUnitsCPUOnly = 0,
  MLComputeUnitsCPUAndGPU = 1,
  MLComputeUnitsAll = 2,
  MLComputeUnitsCPUAndNeuralEngine = 3,
};

enum MLMultiArrayDataType : NSInteger {
  MLMultiArrayDataTypeFloat32 = 0x10000 | 32,
  MLMultiArrayDataTypeFloat16 = 0x10000 | 16,
  MLMultiArrayDataTypeInt32 = 0x20000 | 32,
};

@interface MLMultiArray : NSObject
- (instancetype)initWithDataPointer:(void*)data
                              shape:(NSArray<NSNumber*>*)shape
                           dataType:(MLMultiArrayDataType)type
                            strides:(NSArray<NSNumber*>*)strides
                        deallocator:(void (^)(void* bytes))deallocator
                              error:(NSError**)error;
- (void)getBytesWithHandler:(void(NS_NOESCAPE ^)(const void* bytes, NSInteger size))handler;
- (void)getMutableBytesWithHandler:(void(NS_NOESCAPE ^)(void* bytes, NSInteger size, NSArray<NSNumber*>* strides))
                                       handler;
@property(readonly) MLMultiArrayDataType dataType;
@property(readonly) NSArray<NSNumber*>* shape;
@property(readonly) NSArray<NSNumber*>* strides;
@end

@interface MLFeatureValue : NSObject
+ (instancetype)featureValueWithMultiArray:(MLMultiArray*)value;
@property(readonly) MLMultiArray* multiArrayValue;
@end

@protocol MLFeatureProvider
- (MLFeatureValue*)featureValueForName:(NSString*)name;
@end

@interface MLDictionaryFeatureProvider : NSObject <MLFeatureProvider>
- (instancetype)initWithDictionary:(NSDictionary<NSString*, id>*)dictionary error:(NSError**)error;
@end

@interface MLModelConfiguration : NSObject
@property MLComputeUnits computeUnits;
@property(copy) NSString* functionName;
@end

@interface MLState : NSObject
- (void)getMultiArrayForStateNamed:(NSString*)name handler:(void(NS_NOESCAPE ^)(MLMultiArray* array))handler;
@end

@interface MLModel : NSObject
+ (NSURL*)compileModelAtURL:(NSURL*)url error:(NSError**)error;
+ (instancetype)modelWithContentsOfURL:(NSURL*)url
                         configuration:(MLModelConfiguration*)configuration
                                 error:(NSError**)error;
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)features error:(NSError**)error;
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)features
                                     usingState:(MLState*)state
                                          error:(NSError**)error;
- (MLState*)newState;
@end
