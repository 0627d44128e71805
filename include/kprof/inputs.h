/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The inputs of an operator, as they cross from the kernel (bpf/inputs.h) to user space
 * (user/capture/event/inputs_text.c): how the kernel's program reads the arguments of a call, and
 * what it writes. Included by kprof/wire.h.
 */
#ifndef KPROF_INPUTS_H
#define KPROF_INPUTS_H

/*
 * The words in which a function's arguments are passed: the six integer registers, then the words
 * on the stack above the return address. Those in vector registers (double, float) cannot be read.
 */
#define KPROF_INPUTS_REGISTERS 6
#define KPROF_INPUTS_MAX_WORDS 32

/* How one argument is read. `at` is the number of a word. */
enum kprof_input_read {
	KPROF_INPUT_END = 0,
	KPROF_INPUT_WORDS,  /* a value in the words from `at` on */
	KPROF_INPUT_MEMORY, /* a value in `nr` words of memory: `at` has their address */
	KPROF_INPUT_SCALAR, /* a c10::Scalar there */
	/* `at` has the address of a Tensor, which is a pointer to a TensorImpl */
	KPROF_INPUT_TENSOR,
	/* `at` has the address of a bool that says whether the Tensor behind it is there */
	KPROF_INPUT_TENSOR_AFTER_FLAG,
	KPROF_INPUT_TENSOR_BEFORE_FLAG, /* … of a Tensor, and of such a bool behind it */
	/* `at` has the address of a row of Tensors, `at` + 1 how many there are */
	KPROF_INPUT_TENSORS,
	/* `at` has the address of a c10::IListRef<Tensor>: such a row, and what kind it is */
	KPROF_INPUT_TENSOR_LIST_REF,
	/* `at` has the address of a std::vector<Tensor>, each of which is an input of its own */
	KPROF_INPUT_TENSOR_VECTOR,
	/* `at` has the address of a row of numbers of `nr` words, `at` + 1 how many there are */
	KPROF_INPUT_NUMBERS,
	KPROF_INPUT_NUMBERS_IF, /* … if the low byte of `at` + 2 is not 0 */
};

struct kprof_input {
	kprof_u8 read; /* enum kprof_input_read */
	kprof_u8 at, nr;
	/* Of WORDS, MEMORY and SCALAR, in bytes from their begin on: */
	kprof_u8 value; /* where the value is */
	kprof_u8 bytes; /* how many it has, at most 8; 0: only whether it is there is recorded */
	/* where the bool is that says whether it is there, + 1; 0: it always is */
	kprof_u8 flag;
	kprof_u8 pad[2];
};

#define KPROF_INPUTS_VALUE_WORDS 8 /* what is read of a value in memory, at most */
#define KPROF_INPUTS_MAX 32        /* operators with more arguments have none recorded */
struct kprof_inputs_plan {
	/*
	 * Bits of the word KPROF_TENSOR_TYPE that are recorded: KPROF_TENSOR_ELEMENTS, and flags.
	 * With one of these set, the sizes are not in the object, or are not what the program sees.
	 */
	kprof_u64 type_mask;
	kprof_u16 sizes_off; /* of TensorImpl::sizes_and_strides_ in a TensorImpl */
	kprof_u8 nr;         /* of in[]; of the boxed door: 0: the values are not recorded */
	kprof_u8 stack_words;
	/*
	 * Of the boxed door, where arguments are IValues on a stack: the tag of a list, where the
	 * list's object has its elements (a std::vector, then the elements' type), the kind of such
	 * a type that is Tensor. Else 0.
	 */
	kprof_u16 list_off;
	kprof_u8 list_tag, tensor_kind;
	struct kprof_input in[KPROF_INPUTS_MAX];
};

/*
 * What is written for each argument: a head, and for a VALUE what it says is there.
 *   WORDS, MEMORY: `nr` words: the value, or nothing
 *   SCALAR: two words: its kind, its value
 *   TENSOR*: `nr` is the number of dimensions; KPROF_TENSOR_WORDS, then the sizes, then the strides
 *   TENSORS, TENSOR_LIST_REF, TENSOR_VECTOR: `nr` is their number; a head and so on for each; if
 *     there are more than KPROF_INPUTS_MAX_LIST, nothing
 *   NUMBERS*: `nr` numbers; if there are more than KPROF_INPUTS_MAX_LIST, nothing
 */
enum kprof_input_status {
	KPROF_INPUT_UNREADABLE = 0,
	KPROF_INPUT_VALUE = 1,
	KPROF_INPUT_NONE = 2, /* an optional argument that is not given */
};
#define KPROF_INPUT_HEAD(status, nr) ((kprof_u64)(nr) << 8 | (kprof_u64)(status))
#define KPROF_INPUT_STATUS(head) ((kprof_u32)((head)&0xff))
#define KPROF_INPUT_NR(head) ((kprof_u32)((head) >> 8))

#define KPROF_INPUTS_MAX_LIST 30 /* torch.profiler shows no longer lists, either */
#define KPROF_INPUTS_MAX_DIMS 64

/* The words of a tensor before its sizes. */
enum kprof_tensor_word {
	KPROF_TENSOR_VTABLE, /* the object's vtable pointer: of which class it is */
	KPROF_TENSOR_NUMEL,  /* the number of elements */
	KPROF_TENSOR_TYPE,   /* bits 0 to 15: type of the elements; from bit 48 on: flags */
	KPROF_TENSOR_WORDS
};
#define KPROF_TENSOR_ELEMENTS 0xffffull

/*
 * What is read of a TensorImpl from sizes_and_strides_ on: that (size, then 5 sizes and 5 strides,
 * or a pointer to more of both), storage_offset_, numel_, data_type_ and what follows.
 */
#define KPROF_TENSOR_INLINE_DIMS 5
#define KPROF_TENSOR_READ_WORDS 14
#define KPROF_TENSOR_READ_NUMEL 12
#define KPROF_TENSOR_READ_TYPE 13

/*
 * What an agent writes of the inputs that PyTorch shows to observers: how many there are, then for
 * each what is written for an argument, with its kind in the head. Where words are missing at the
 * end, there was no room for more.
 */
enum kprof_input_kind {
	KPROF_INPUT_IS_OTHER = 0, /* no words: missing, or nothing that is shown */
	KPROF_INPUT_IS_TENSOR,    /* as TENSOR */
	KPROF_INPUT_IS_TENSORS,   /* as TENSORS */
	KPROF_INPUT_IS_DOUBLE,    /* one word; so INT and BOOL */
	KPROF_INPUT_IS_INT,
	KPROF_INPUT_IS_BOOL,
	KPROF_INPUT_IS_DOUBLES, /* as NUMBERS; so INTS and BOOLS */
	KPROF_INPUT_IS_INTS,
	KPROF_INPUT_IS_BOOLS,
	KPROF_INPUT_IS_NUMBER,  /* no words: of a kind that is not read, such as a complex one */
	KPROF_INPUT_IS_UNKNOWN, /* no words */
	KPROF_INPUT_KINDS
};
#define KPROF_INPUT_OF_KIND(kind, status, nr) \
	((kprof_u64)(kind) << 48 | KPROF_INPUT_HEAD(status, nr))
#define KPROF_INPUT_KIND(head) ((kprof_u32)((head) >> 48))

/*
 * What is written of a call through the boxed door: these words, then the operator's name with its
 * final NUL, filled up to whole words with 0, then values, in the agent's form. The values are the
 * uppermost of the stack, the last argument last; how many of them are arguments is for user space
 * to find out.
 */
enum kprof_boxed_word {
	KPROF_BOXED_NAME_BYTES, /* with the NUL; 0: it could not be read */
	KPROF_BOXED_OPERATOR,   /* the address of the operator's definition */
	/*
	 * What lies at two places of the definition, three words each (KPROF_BOXED_AT): the place
	 * of its schema's vector of arguments depends on what strings and optionals are. 2, 1, 0:
	 * they could not be read
	 */
	KPROF_BOXED_AT_FIRST,
	KPROF_BOXED_AT_SECOND = KPROF_BOXED_AT_FIRST + 3,
	/*
	 * How many values the stack has; the uppermost KPROF_INPUTS_MAX follow the name. All bits:
	 * it could not be read, and none follow
	 */
	KPROF_BOXED_VALUES = KPROF_BOXED_AT_SECOND + 3,
	/*
	 * The value that the sequence number goes by: 1 is the uppermost; 0: it goes by none
	 */
	KPROF_BOXED_TENSOR,
	KPROF_BOXED_WORDS
};
#define KPROF_BOXED_FIRST_OFF 32
#define KPROF_BOXED_SECOND_OFF 128

_Static_assert(sizeof(struct kprof_inputs_plan) == 272, "inputs: plan");

#endif
