/* Objects of one size: a list whose nodes come from a pool.
 *
 *     cc objects.c $(pkg-config --cflags --libs nbbs) -o objects
 */

#include <nbbs.h>
#include <stdio.h>

struct node {
    struct node *next;
    int value;
};

int main(void) {
    nbbs_pool_config config = {.size = sizeof(struct node), .align = _Alignof(struct node), .limit = 100000};
    nbbs_pool *pool;
    nbbs_error error;
    char text[120];
    if (nbbs_pool_create(&config, NULL, &pool, &error)) return 1; /* NULL: from malloc */

    struct node *list = NULL;
    for (int value = 0; value < 1000; value++) {
        void *place;
        if (nbbs_pool_alloc(pool, &place, &error)) return 1;
        struct node *node = place;
        *node = (struct node){list, value};
        list = node;
    }
    long sum = 0;
    while (list != NULL) {
        struct node *next = list->next;
        sum += list->value;
        if (nbbs_pool_free(pool, list, &error)) return 1;
        list = next;
    }
    int wrong = 0;
    nbbs_pool_free(pool, &wrong, &error);
    nbbs_message(&error, text, sizeof text);
    printf("the sum is %ld; %s\n", sum, text);
    int failed = sum != 499500 || nbbs_pool_len(pool) != 0;
    nbbs_pool_destroy(pool);
    return failed;
}
